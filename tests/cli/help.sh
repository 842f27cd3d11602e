# The help of every command fits 80 columns in both languages, and says what it should.
wide_lines() {  # lines over 80 columns; a character outside ASCII counts as two
  local line other
  while IFS= read -r line; do
    other=${line//[ -~]/}
    ((${#line} + ${#other} <= 80)) || echo "$line"
  done <<<"$1"
}
commands='tour lab train translate generate inspect score align check attend regress plot data bench info'
sets='en-fr nadaraya-watson waist measures attention vocab subwords split fra-eng'
for lang in en zh; do
  for words in '' $commands $(printf 'data/%s ' $sets); do
    expect 0 '' --lang $lang ${words//\// } --help
    wide=$(wide_lines "$out")
    [[ -z $wide ]] || mismatch "qkv $words --help --lang $lang is wider than 80 columns:
$wide"
  done
done

run train --help
for group in 'data (' 'model (' 'training (' 'decoding (' "the book's habits ("; do
  expect_match $'\n\n'"$(sed 's/(/\\(/' <<<"$group")" "$out"
done
expect_match '--epochs N +passes over the data \(default [0-9]+\)' "$out"
run lab --help
expect_match '10\.2 +[a-z-]+ +[A-Z]' "$out"
run data --help
expect_match 'subwords +a SentencePiece model' "$out"
run data en-fr --help
expect_match '--size N +number of sentence pairs \(default 20000\)' "$out"
[[ $out != *--min-count* ]] || mismatch "an option of another data set: $out"
run help data en-fr
expect_match '^qkv data en-fr: ' "$out"
