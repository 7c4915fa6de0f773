# For tests that run the program in an empty folder of their own: sourced.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 3
failures=0
check() {  # name, command...
  local name=$1; shift
  if "$@" >"$scratch/check" 2>&1; then echo "passed: $name"; else
    echo "FAILED: $name"; cat "$scratch/check"; failures=$((failures + 1)); fi
}
# The command ends with this code, prints nothing, and says why in one line.
refuses() {  # exit code, part of the line, command...
  local expected=$1 message=$2; shift 2
  "$@" >printed 2>err
  local code=$?
  [ $code -eq "$expected" ] && [ ! -s printed ] && [ "$(wc -l <err)" -eq 1 ] && grep -qF -- "$message" err && return
  echo "exit code $code, want $expected and '$message':"; cat printed err; return 1
}
