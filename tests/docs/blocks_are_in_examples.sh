#!/usr/bin/env bash
# blocks_are_in_examples.sh PAGE EXAMPLES: fails unless every ```cpp block of PAGE is, but for indentation and comments,
# part of a file in the folder EXAMPLES, where it is compiled, run and compared.
set -euo pipefail
page=$1 examples=$2 block= in_block= count=0 bad=0
plain() { sed 's/^ *//; s| *// .*||'; }
declare -A files
for file in "$examples"/*.cpp; do files[$file]=$(plain <"$file"); done
while IFS= read -r line; do
  if [[ $line == '```cpp' ]]; then in_block=1 block=
  elif [[ $line == '```' && -n $in_block ]]; then
    in_block= found= count=$((count + 1)) text=$(plain <<<"$block")
    for file in "${!files[@]}"; do [[ ${files[$file]} == *"$text"* ]] && found=1; done
    [[ -n $found ]] || { echo "not in any example: $block"; bad=1; }
  elif [[ -n $in_block ]]; then block+=${block:+$'\n'}$line
  fi
done <"$page"
((count > 0)) || { echo "no blocks in $page"; exit 1; }
exit $bad
