#!/usr/bin/env bash
# The compiler behind ccache, as the build calls it: a precompiled header is never older than the headers that it was made
# from. Arguments: the launcher and the compiler.
set -u
source "${BASH_SOURCE[0]%/*}/checks.sh"
export CCACHE_DIR="$scratch/cache"
compile() { "$@" -MD -MT "${!#}" -MF "${!#}.d"; }

builds() {
  rm -f prefix.hpp.gch source.o
  compile "$@" -x c++-header -c prefix.hpp -o prefix.hpp.gch &&
    compile "$@" -Winvalid-pch -include "$scratch/prefix.hpp" -c source.cpp -o source.o
}

printf '#pragma once\nstruct Answer { int value; };  // one\n' >answer.hpp
printf '#include "answer.hpp"\n' >prefix.hpp
printf '#include "answer.hpp"\nint first(Answer a) { return a.value; }\n' >source.cpp
check "a source is compiled with a precompiled header" builds "$@"
sleep 1 # ccache does not trust a file as young as its compilation
sed -i 's/one/two/' answer.hpp
printf 'int second(Answer a) { return a.value; }\n' >>source.cpp
sleep 1
check "and again after a comment of the header has changed" builds "$@"
sed -i 's/int value/int  value/' answer.hpp
printf 'int third(Answer a) { return a.value; }\n' >>source.cpp
sleep 1
check "and after a blank has" builds "$@"
[ $failures -eq 0 ]
