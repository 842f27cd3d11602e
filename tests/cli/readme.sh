# Runs the commands of README.md and docs/commands.md, from their sh blocks, in order in one folder, so that they keep
# working. Those of the Chinese pages must be the same, and the pages and pictures that they link to must exist.
# README_ALL=1 runs the commands unchanged; else trainings are shortened, and slow commands are left out.
root=$(realpath "$(dirname "$test_file")/../..")
all=${README_ALL:-}

# commands FILE: the lines of its sh blocks without comments; a line that ends in a backslash is joined with the next.
commands() {
  awk '/^```sh/ { on = 1; next } /^```/ { on = 0 } on' "$1" | sed 's/^# .*//; s/ *# .*//; s/ *$//' |
    sed -e ':again' -e '/\\$/ { N; s/ *\\\n */ /; b again' -e '}' | grep -v '^$'
}

expect_match '^\./qkv tour' "$(commands "$root/README.md")"
for page in README docs/commands; do
  checks=$((checks + 1))
  difference=$(diff <(commands "$root/$page.md") <(commands "$root/$page.zh-CN.md")) ||
    mismatch "$page.md and $page.zh-CN.md have other commands:
$difference"
  for file in "$page.md" "$page.zh-CN.md"; do
    while IFS= read -r link; do
      checks=$((checks + 1))
      [[ -e $(dirname "$root/$file")/$link ]] || mismatch "$file links to $link, which does not exist"
    done < <(grep -oP '(?<=\]\()[^)#:]+(?=\))|(?<=src=")[^":]+' "$root/$file")
  done
done

# The book's file comes from the network; here it is the real file if available, else pairs in its format.
book=${QKV_TEST_DATA:-$root/../shared/data}/fra-eng/fra.txt
if [[ -e $book ]]; then cp "$book" fra.txt; chmod u+w fra.txt
else for i in {1..700}; do printf 'Go %s.\tVa %s !\n' $((i % 40)) $((i % 40)); done >fra.txt; fi

printf '#!/bin/sh\nexec "%s" "$@"\n' "$QKV" >qkv; chmod +x qkv
ran=0
while IFS= read -r line; do
  extra=
  case $line in
    './test'* | 'cmake '*) continue ;;                          # this suite itself; the consumer test installs
    *'data fra-eng'*) echo "not run, it needs a network: $line"; continue ;;
    *' tour') [[ -n $all ]] || continue ;;                      # cli.tour
    *' tour --model '*) extra=' 10.1' ;;
    *' bench' | *' lab bahdanau '* | *' lab transformer '*) [[ -n $all ]] || continue ;;
    *'train --preset d2l-'*) extra=' --epochs 2' ;;
    *'train --preset vit') extra=' --picture-count 320 --epochs 1 --warmup 1' ;;
    *'train --preset '*) extra=' --corpus-size 400 --epochs 1 --warmup 1' ;;
    *'data en-fr '*) extra=' --size 2000' ;;
  esac
  [[ -z $all ]] || extra=
  checks=$((checks + 1)) ran=$((ran + 1))
  bash -o pipefail -c "$line$extra" >out.txt 2>err.txt </dev/null
  code=$?
  [[ $code == 0 ]] || mismatch "$line$extra: exit code $code: $(tail -n 3 err.txt)"
  ! grep -q '^qkv: error' err.txt || mismatch "$line$extra: $(grep '^qkv: error' err.txt)"
done < <(commands "$root/README.md"; commands "$root/docs/commands.md")
((ran > 30)) || mismatch "only $ran commands were found"

# The files that the commands write exist.
[[ -n $(find lab -name "*.svg") && -n $(find lab -name "*.png") ]] || mismatch "no figures in lab/"
for file in waist.csv nw.csv fit.png weights.png fit.csv heads.png heat.png corpus.test.tsv hyp.txt ref.txt hyp.align words/additive.safetensors weights.npy heat.svg; do
  checks=$((checks + 1))
  [[ -s $file ]] || mismatch "no $file"
done
