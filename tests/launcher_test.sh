#!/usr/bin/env bash
# Tests ./attest in a copy of the repository's skeleton, with stand-ins for cmake, ctest, apt-get and their like, so
# that every path is walked in seconds and without network. Usage: launcher_test.sh REPOSITORY
set -euo pipefail

repository=$1
scratch=$(mktemp -d)
trap 'rm -rf -- "$scratch"' EXIT
tree="$scratch/a tree with spaces"
stubs=$scratch/stubs
mkdir -p "$tree"/{core,cmake,experiments/results,.git/logs} "$stubs"
cp -- "$repository/attest" "$tree/attest"
cp -- "$repository/cmake/packages.txt" "$tree/cmake/packages.txt"
# For `./attest help` the documents, too.
mapfile -t documents < <(sed 's/^[^ ]* //; s/:.*//' "$repository/cli/help_topics.txt")
(cd -- "$repository" && cp --parents -- cli/help_topics.txt "${documents[@]}" "$tree")
echo 'int x;' >"$tree/core/a.cpp"
echo ref >"$tree/.git/HEAD"
touch "$tree/CMakeLists.txt" "$tree/CMakePresets.json"
export CALLS=$scratch/calls INSTALLED=$scratch/installed WHO=$scratch/who BROKEN=$scratch/broken STEPS=$scratch/steps
unset ATTEST_PRESET ATTEST_INSTALL ATTEST_SECONDS_BETWEEN_LINES
export ATTEST_GPU=yes  # whatever this machine has

stub() { { echo '#!/usr/bin/env bash'; cat; } >"$stubs/$1"; chmod +x "$stubs/$1"; }
stub cmake <<'E2'
echo "cmake $*" >>"$CALLS"
if [ "$1" = --preset ]; then mkdir -p "build/$2" && touch "build/$2/CMakeCache.txt" "build/$2/build.ninja"; exit; fi
head -n 1 "$STEPS"; sleep "${SLOW:-0}"; sed 1d "$STEPS"; touch "$2/.ninja_log"
[ -e "$BROKEN" ] && { echo "a.cpp:1: error: it is broken"; exit 1; }
mkdir -p "$2/bin"
case "$*" in *"--target attest-mutants"*) made=attest-mutants ;; *) made=attest ;; esac
printf '#!/usr/bin/env bash\nprintf "<%%s>" %s "$@"\nexit 7\n' "${made/#attest/ran}" >"$2/bin/$made"
chmod +x "$2/bin/$made"
E2
stub ctest <<'E2'
case " $* " in *" -N "*--exclude-regex*) echo "Total Tests: 12"; exit ;; *" -N "*) echo "Total Tests: 17"; exit ;; esac
echo "ctest $*" >>"$CALLS"; echo "100% tests passed"; [ ! -e "$BROKEN" ] || exit 8
E2
stub ninja <<'E2'
case "$3 $4 $5" in "-f $2/build.ninja -n") cat "$STEPS" ;; *) echo "[1/1] Re-running CMake..." ;; esac
E2
stub nproc <<<'echo 2'
stub id <<<'cat "$WHO"'
stub sudo <<<'exit 1'
stub dpkg-query <<'E2'
while [ $# -gt 3 ]; do if grep -qx "$4" "$INSTALLED"; then echo "ii :$4:amd64"; fi; shift; done; exit 1
E2
stub apt-get <<'E2'
echo "apt-get $*" >>"$CALLS"
case "$*" in *simulate*) exit 100 ;; *update*) exit 0 ;; esac
for word in "$@"; do echo "$word" >>"$INSTALLED"; done
E2
export PATH=$stubs:$PATH

failures=0
passes=0
check() {  # title, then a command that must succeed
  local title=$1; shift
  if "$@"; then passes=$((passes + 1)); else failures=$((failures + 1)); echo "FAILED: $title"; fi
}
run() {  # launcher arguments; sets status, out, err
  : >"$CALLS"
  status=0
  "${launcher[@]}" "$@" >"$scratch/out" 2>"$scratch/err" || status=$?
  out=$(<"$scratch/out") err=$(<"$scratch/err")
}
is() { [ "$1" = "$2" ] || { echo "  got '$1', want '$2'"; return 1; }; }
has() { [[ $1 == *"$2"* ]] || { echo "  '$2' is not in: $1"; return 1; }; }
not_has() { [[ $1 != *"$2"* ]] || { echo "  '$2' is in: $1"; return 1; }; }
called() { grep -qF -- "$1" "$CALLS" || { echo "  not called: $1"; return 1; }; }
not_called() { ! grep -F -- "$1" "$CALLS"; }
steps() {  # number, end of the line: what ninja has to do
  for ((i = 1; i <= $1; ++i)); do echo "[$i/$1] Building $i$2"; done >"$STEPS"
}
later() { sleep 0.02; "$@"; }  # file times have a grain of some milliseconds

launcher=("$tree/attest")
steps 70 .cu.o
echo 1000 >"$WHO"
: >"$INSTALLED"

# Help, versions and typing errors: alike before the first build and after it, and nothing is called for them.
asked() {  # when
  local when=$1 words
  for words in "" help --help -h "test --help" "install --help" --version; do
    run $words
    check "$when: './attest $words' ends with 0" is "$status" 0
    check "$when: './attest $words' says something" [ -n "$out" ]
    check "$when: './attest $words' says it on stdout" is "$err" ""
    check "$when: './attest $words' calls nothing" is "$(<"$CALLS")" ""
    echo "$out" >>"$scratch/said_$when"
  done
  while IFS='|' read -r words message; do
    run $words
    check "$when: './attest $words' is bad input" is "$status" 2
    check "$when: './attest $words' gets one line" is "$(wc -l <"$scratch/err")" 1
    check "$when: './attest $words' says why" has "$err" "$message"
    check "$when: './attest $words' calls nothing" is "$(<"$CALLS")" ""
  done <<'END'
verfy|'verfy' is no subcommand; near: verify
zzz|'zzz' is no subcommand; see ./attest --help
--nope|'--nope' is unknown; allowed: a subcommand first
help bogus|help: 'bogus' is no topic; allowed: laws, judging,
help laws words|help: 'words' is one word too many; allowed: one topic
install bogus|'bogus' is no group; allowed: style, fuzz, peers, notebooks
test --bogus|test: '--bogus' is unknown; allowed: --quick
test -R|test: '-R' needs a value
END
}
asked before

run verify
check "a missing package that cannot be installed ends with 3" is "$status" 3
check "it is said what is missing, by group" has "$err" "missing, compiler: g++"
check "the line to run is printed" has "$err" "sudo apt-get install -y --no-install-recommends g++ cmake"
check "style tools are not asked for" not_called clang-format
check "nothing is built then" not_called cmake

echo 0 >"$WHO"
run verify "two words" ''
check "the exit status is the program's" is "$status" 7
check "arguments arrive whole" is "$out" "<ran><verify><two words><>"
check "an unknown package makes apt update first" called "apt-get -o DPkg::Lock::Timeout=300 update"
check "all packages are installed" called "install -y --no-install-recommends g++ cmake ninja-build"
check "it configures with ninja" called "cmake --preset release -G Ninja"
check "only the program is built" called "--target attest"

# Processor time, so that a busy machine does not count.
TIMEFORMAT='%3U %3S'
{ time run verify; } 2>"$scratch/time"
milliseconds=$(awk '{ print int(1000 * ($1 + $2)) }' "$scratch/time")
check "unchanged sources: nothing is called" is "$(<"$CALLS")" ""
check "unchanged sources: nothing is said" is "$err" ""
# The promise is 200 ms; a slow processor gets some slack, a build does not fit.
check "unchanged sources: it starts at once ($milliseconds ms)" [ "$milliseconds" -lt 1000 ]

for change in "core/a.cpp" "core/new.cpp" "cmake/packages.txt" ".git/logs/HEAD" "attest"; do
  later touch "$tree/$change"
  run verify
  check "a change of $change makes it build" called "cmake --build"
  check "a change of $change does not configure again" not_called "cmake --preset"
done
later rm "$tree/core/new.cpp"
run verify
check "a file that goes makes it build" called "cmake --build"
later touch "$tree/experiments/results/record.jsonl"
run verify
check "a new record does not" not_called cmake
later touch "$tree/CMakePresets.json"
run verify
check "changed presets configure again, fresh" called "cmake --preset release --fresh"

(cd / && ln -s "$tree/attest" "$scratch/link")
launcher=("$scratch/link")
run list
check "a symbolic link runs the program" is "$out" "<ran><list>"
check "a symbolic link finds the tree that is built" not_called cmake
launcher=("$tree/attest")

mkdir -p "$tree/notebooks" "$tree/build/venv/bin"
cp -r -- "$repository/notebooks/attest_book" "$tree/notebooks/attest_book"
printf '#!/usr/bin/env bash\n[ ! -e "$BROKEN" ] || exit 3\n' >"$tree/notebooks/make_environment"
printf '#!/usr/bin/env bash\n[ "$1" = -c ] || printf "<%%s>" "$PYTHONPATH" "$@"\n' >"$tree/build/venv/bin/python"
chmod +x "$tree/notebooks/make_environment" "$tree/build/venv/bin/python"
run report 'two words'
check "a report runs the Python package" is "$out" "<$tree/notebooks><-B><-m><attest_book><report><two words>"
check "a report needs no build" not_called cmake
later touch "$tree/core/a.cpp"
run report --errors mine
check "a report of errors builds the program that measures them" called "cmake --build"
check "and runs the Python package" has "$out" "<report><--errors><mine>"
touch "$BROKEN"
run notebooks
check "an environment that cannot be made ends with 3" is "$status" 3
check "nothing runs then" is "$out" ""
rm "$BROKEN"

cp "$repository/notebooks/make_environment" "$tree/notebooks/make_environment"
echo 'altair==5' >"$tree/notebooks/requirements.lock"
printf '%s\n' "$tree" | cat - "$tree/notebooks/requirements.lock" >"$tree/build/venv/made_from"
mkdir "$scratch/other"
printf '#!/usr/bin/env bash\nexec /usr/bin/python3 "$@"\n' >"$scratch/other/python3"
chmod +x "$scratch/other/python3"
PATH=$scratch/other:$PATH run report x
check "another python3 on PATH keeps the environment" is "$out" "<$tree/notebooks><-B><-m><attest_book><report><x>"
check "without a word" is "$err" ""
rm "$tree/build/venv/made_from"
mkdir "$tree/build/.venv-lock"  # as a folder of somebody else's: no file can be made there
run report x
check "an environment in a tree of somebody else's is the machine's fault" is "$status" 3
check "in one line" is "$err" "attest: no Python environment for notebooks and reports: cannot write to $tree/build"
rmdir "$tree/build/.venv-lock"
mv "$tree/build/venv" "$scratch/venv"
mkdir "$tree/build/venv.log"  # as a file of somebody else's, in a folder that is shared: it cannot be written
run report x
check "a log of somebody else's is the machine's fault" is "$status" 3
check "in one line, too" is "$err" "attest: no Python environment for notebooks and reports: cannot write to $tree/build/venv or $tree/build/venv.log"
rmdir "$tree/build/venv.log"
mv "$scratch/venv" "$tree/build/venv"

later touch "$tree/core/a.cpp"
mv "$tree/build/release/launcher.log" "$scratch/launcher.log"
mkdir "$tree/build/release/launcher.log"
for words in verify "install style"; do
  run $words
  check "'./attest $words' with a log of somebody else's ends with 3" is "$status" 3
  check "'./attest $words' says so in one line" is "$err" "attest: cannot write to $tree/build/release/launcher.log"
done
rmdir "$tree/build/release/launcher.log"
run verify

ATTEST_PRESET=asan run verify
check "another preset has its own build" called "cmake --preset asan"
ATTEST_PRESET=fast run verify
check "an unknown preset is bad input" is "$status" 2
check "an unknown preset is named with the allowed ones" has "$err" "'fast', but must be release, dev, cpu or asan"

# Where there is an nvcc and no GPU.
stub nvcc </dev/null
run_without_gpu() { ATTEST_GPU=no run "$@"; }
rm -rf -- "$tree/build/release"
run_without_gpu verify
check "without a GPU, code for one is not built" called "cmake --preset cpu"
check "nor anything but the program" called "--target attest"
check "it says so, and how to have it" has "$err" "no GPU here: building without code for one (./attest --gpu verify ... builds it)"
check "it says how long a build takes" has "$err" "building preset cpu, 70 steps, about 3 min on 2 cores"
check "and runs" is "$status" 7
run_without_gpu verify
check "it is said once" is "$err" ""
run_without_gpu explain
check "explain asks for machine code" called "cmake --preset release"
run_without_gpu verify
check "a build with it serves everybody" is "$(<"$CALLS")" ""
rm -rf -- "$tree/build/release" "$tree/build/cpu"
run_without_gpu --gpu verify
check "--gpu asks for it, too" called "cmake --preset release"
check "and is no argument of the program" is "$out" "<ran><verify>"
rm -rf -- "$tree/build/release" "$stubs/nvcc"
ATTEST_GPU=maybe run verify
check "ATTEST_GPU is yes or no" is "$status-$err" "2-attest: ATTEST_GPU is 'maybe', but must be yes or no"
run verify

# The time that a build takes: of this machine's last one from nothing, in proportion to what is to do.
build_anew() { rm -rf -- "$tree/build/release" && run verify; }
took_file=$tree/build/release.took
steps 2 .o
SLOW=2 build_anew
check "before it was measured, time is that of another machine" has "$err" "2 steps, about 1 s on"
took=0 rest=; [ ! -e "$took_file" ] || read -r took rest <"$took_file"
check "what it took is kept, with its steps" is "$rest" "2 4"
check "in seconds" [ "$took" -ge 2 ]
steps 100 .o
later touch "$tree/core/a.cpp"
run verify
check "then it is what it took here" has "$err" "100 steps, about $(((50 * took + 30) / 60)) min on"
build_anew
check "a build that a compiler cache served is not learned from" grep -qx "$took 2 4" "$took_file"
steps 1 .o
later touch "$tree/core/a.cpp"
SLOW=2 run verify
check "nor is a build of what changed" grep -qx "$took 2 4" "$took_file"
: >"$STEPS"
later touch "$tree/core/a.cpp"
run verify
check "where ninja has nothing to do, or is not there, nothing is said of time" has "$err" "building preset release (log:"
check "and it is built" is "$status" 7

# What is left, while it builds: a step that costs little says little of those that cost much.
{ echo "[1/41] Linking x"; for ((i = 2; i <= 41; ++i)); do echo "[$i/41] Building $i.cu.o"; done; } >"$STEPS"
for terminal in "" yes; do
  later touch "$tree/core/a.cpp"
  if [ -n "$terminal" ]; then
    SLOW=2.5 python3 -c 'import pty, sys; pty.spawn(sys.argv[1:])' "$tree/attest" verify >"$scratch/err" </dev/null || true
  else
    SLOW=2.5 ATTEST_SECONDS_BETWEEN_LINES=1 run verify
  fi
  check "while it builds${terminal:+ on a terminal} it says how far it is, and what is left" grep -qE '\[1/41\], about [0-9]+ min left' "$scratch/err"
done
later touch "$tree/core/a.cpp"
SLOW=2.5 run verify
check "a line a minute, not more" not_has "$err" "left"
check "the log has every line once" cmp "$STEPS" "$tree/build/release/launcher.log"

asked after
check "it is all the same before the first build and after it" cmp "$scratch/said_before" "$scratch/said_after"
printf '#!/usr/bin/env bash\necho "made an environment" >>"$CALLS"\n' >"$tree/notebooks/make_environment"
for words in "report --help" "notebooks -h"; do
  run $words
  check "'./attest $words' ends with 0" is "$status" 0
  check "'./attest $words' helps" has "$out" "usage: attest ${words% *}"
  check "'./attest $words' makes no environment" is "$(<"$CALLS")" ""
done
while IFS='|' read -r words message; do
  run $words
  check "'./attest $words' is bad input" is "$status" 2
  check "'./attest $words' gets one line" is "$(wc -l <"$scratch/err")" 1
  check "'./attest $words' says why" has "$err" "$message"
  check "'./attest $words' makes no environment" is "$(<"$CALLS")" ""
done <<'END'
report|attest: report takes one results folder
report a --bogus|attest: report: '--bogus' is unknown; allowed: --help, --fail-if-slower, --errors
report --out|attest: report: argument --out: expected one argument (./attest report --help)
report a --fail-if-slower 3|attest: --fail-if-slower is '3'; allowed: a share such as 3%
notebooks --bogus|attest: notebooks: '--bogus' is unknown; allowed: --help, --out
END
run report a
check "a report makes the environment" called "made an environment"

run test --quick -j 2
check "the quick tier leaves tests out" called "--exclude-regex ^(mutants|"
check "and passes arguments on" called "-j 2"
check "and says how many of those that were asked for it left out" has "$err" "left out, for they are slow: 5 tests"
run test -R core --quick
check "--quick may stand behind other arguments" called "-R core --exclude-regex ^(mutants|"
run test --quick -E '^core'
check "--quick and -E both leave out" grep -qE -- "-E \^core --exclude-regex \^\(mutants.*CountsInLaunches\|\^core$" "$CALLS"
run test -E --quick
check "a value is a value" called "-E --quick"

run test -R core
check "test runs CTest with the arguments" called "ctest --preset release --parallel 3 -R core"
check "a part of the suite leaves no report" not_called "--output-junit"
check "test builds everything" not_called "--target"
check "test passes" is "$status" 0
run verify
check "a build of everything serves a subcommand" not_called cmake

# Whoever asks for a planted bug gets the second program, and nobody else.
echo '{"case": {"kernel": "mutant/c05_tail"}}' >"$scratch/of_a_mutant.json"
echo '{"case": {"kernel": "k1_naive"}}' >"$scratch/of_a_kernel.json"
while IFS='|' read -r words; do
  run $words
  check "'$words' needs no planted bugs" has "$out" "<ran><"
done <<END
verify --out $scratch/mutants_of_today
replay $scratch/of_a_kernel.json
list kernels
END
run mutants --help
check "'mutants' builds them" called "--target attest-mutants"
while IFS='|' read -r words; do
  run $words
  check "'$words' has planted bugs" has "$out" "<ran-mutants><"
  check "'$words' builds them once" not_called cmake
done <<END
mutants --kills
list mutants
verify --kernel k1_naive,mutant/c05*
errors --kernel=mutant/*
replay $scratch/of_a_mutant.json
END

touch "$BROKEN"
run test
check "a failed test gives 1" is "$status" 1
later touch "$tree/core/a.cpp"
run verify
check "a failed build gives 3" is "$status" 3
check "a failed build shows the error" has "$err" "a.cpp:1: error: it is broken"
check "a failed build names the log" has "$err" "$tree/build/release/launcher.log"
rm "$BROKEN"
run verify
check "the next call builds again" called "cmake --build"

later touch "$tree/core/a.cpp"
: >"$CALLS"
export SLOW=0.5  # longer than the other call needs to get there
"$tree/attest" doctor >"$scratch/one" 2>&1 || true &
"$tree/attest" list >"$scratch/two" 2>&1 || true
wait
unset SLOW
check "two calls at once build once" is "$(grep -c -- --build "$CALLS")" 1
check "the first runs" has "$(<"$scratch/one")" "<ran><doctor>"
check "the second runs" has "$(<"$scratch/two")" "<ran><list>"

mv "$tree" "$scratch/moved"
launcher=("$scratch/moved/attest")
run verify
check "a moved tree is configured afresh" called "cmake --preset release --fresh"

: >"$INSTALLED"
run install style
check "install takes the default groups" called libbenchmark-dev
check "and one more besides them" called clang-format-14
check "install does not build" not_called "cmake --"
run install style
check "install does nothing when all is there" is "$(<"$CALLS")$err" ""
: >"$INSTALLED"
later touch "$scratch/moved/core/a.cpp"
ATTEST_INSTALL=never run test
check "installing can be refused" not_called apt-get
check "the whole suite leaves a report" called "--output-junit $scratch/moved/build/release/tests.xml"

echo "$passes passed, $failures failed"
[ "$failures" -eq 0 ]
