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
