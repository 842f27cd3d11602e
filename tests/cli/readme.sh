# Runs the commands of README.md, from its sh blocks, in order in one folder, so that they keep working; those of the Chinese README
# must be the same. README_ALL=1 runs them unchanged; else trainings are shortened, and slow commands are left out.
readme=$(dirname "$test_file")/../../README.md
all=${README_ALL:-}

# commands FILE: the lines of its sh blocks without comments.
commands() { awk '/^```sh/ { on = 1; next } /^```/ { on = 0 } on' "$1" | sed 's/ *# .*//; s/ *$//' | grep -v '^$'; }

expect_match '^\./qkv tour' "$(commands "$readme")"
checks=$((checks + 1))
difference=$(diff <(commands "$readme") <(commands "${readme%.md}.zh-CN.md")) || mismatch "the two READMEs have other commands:
$difference"

# The book's file comes from the network; here it is the real file if available, else pairs in its format.
book=${QKV_TEST_DATA:-$(dirname "$test_file")/../../../shared/data}/fra-eng/fra.txt
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
    *' bench' | *' lab bahdanau '* | *' lab transformer '*) [[ -n $all ]] || continue ;;
    *'train --preset d2l-'*) extra=' --epochs 2' ;;
    *'train --preset '*) extra=' --corpus-size 400 --epochs 1 --warmup 1' ;;
    *'data en-fr '*) extra=' --size 2000' ;;
  esac
  [[ -z $all ]] || extra=
  checks=$((checks + 1)) ran=$((ran + 1))
  bash -o pipefail -c "$line$extra" >out.txt 2>err.txt </dev/null
  code=$?
  [[ $code == 0 ]] || mismatch "$line$extra: exit code $code: $(tail -n 3 err.txt)"
  ! grep -q '^qkv: error' err.txt || mismatch "$line$extra: $(grep '^qkv: error' err.txt)"
done < <(commands "$readme")
((ran > 25)) || mismatch "only $ran commands were found"

# The files that the commands write exist.
[[ -n $(find lab -name "*.svg") && -n $(find lab -name "*.png") ]] || mismatch "no figures in lab/"
for file in waist.csv nw.csv fit.png fit.csv heat.png corpus.test.tsv hyp.txt ref.txt hyp.align words/additive.safetensors weights.npy heat.svg; do
  checks=$((checks + 1))
  [[ -s $file ]] || mismatch "no $file"
done
