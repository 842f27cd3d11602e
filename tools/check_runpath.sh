#!/usr/bin/env bash
# check_runpath.sh FOLDER: fails when a program or library in the folder looks for libraries in the current folder.
# The loader resolves an empty or relative entry of RUNPATH or RPATH that way, and would run any library found there.
set -euo pipefail
folder=${1:?usage: check_runpath.sh FOLDER}
checked=0 wrong=0
while IFS= read -r -d '' file; do
  LC_ALL=C IFS= read -r -d '' -n 4 magic 2>/dev/null <"$file" || true
  [[ $magic == $'\x7fELF' ]] || continue
  checked=$((checked + 1))
  while IFS= read -r path; do
    [[ $path =~ \[(.*)\]$ ]] || continue
    rest=${BASH_REMATCH[1]}:
    while [[ -n $rest ]]; do
      entry=${rest%%:*} rest=${rest#*:}
      [[ $entry == /* || $entry == '$ORIGIN' || $entry == '$ORIGIN/'* || $entry == '${ORIGIN}'* ]] && continue
      if [[ -n $entry ]]; then kind=relative; else kind=empty; fi
      printf '%s: the entry "%s" of its RUNPATH is %s\n' "${file#"$folder"/}" "$entry" "$kind"
      wrong=$((wrong + 1))
    done
  done < <(LC_ALL=C readelf -d -- "$file" | grep -E '\((RUNPATH|RPATH)\)' || true)
done < <(find "$folder" -name CMakeFiles -prune -o -type f \( -perm -u+x -o -name '*.so*' \) -print0)
printf '%d programs and libraries checked, %d wrong entries\n' "$checked" "$wrong"
((checked > 0 && wrong == 0))
