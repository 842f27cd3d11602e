# qkv check: models without leaks, the book's encoder that reads padding, broken weights, and what it refuses.
names=(nul un deux trois quatre cinq)
for a in 0 1 2 3 4 5; do for b in 0 1 2 3 4 5; do printf '%s %s\t%s %s\n' $a $b ${names[b]} ${names[a]}; done; done >pairs.tsv
common=(--data pairs.tsv --tokenizer spaces --min-count 1 --hidden 16 --batch-rows 16 --epochs 1 --quiet)
run train "${common[@]}" --kind transformer --heads 2 --ffn 16 --layers 2 -o model
[[ $code == 0 ]] || mismatch "train: exit code $code: $err"
run train "${common[@]}" --kind transformer --heads 2 --ffn 16 --layers 1 --positions learned --max-positions 6 -o learned
[[ $code == 0 ]] || mismatch "train: exit code $code: $err"
run train "${common[@]}" --embed 16 -o recurrent
[[ $code == 0 ]] || mismatch "train: exit code $code: $err"
run train "${common[@]}" --embed 16 --skip-padding false -o book
[[ $code == 0 ]] || mismatch "train: exit code $code: $err"

for model in model learned recurrent; do
  expect 0 '' check --model $model
  expect_match "^$model: sentence pairs of random tokens: 16
 +tried +scores +largest
 +[0-9]+ +[0-9]+ +0  change every later target token: ok
 +[0-9]+ +[0-9]+ +0  add padding, with other ids in it: ok
 +[0-9]+ +[0-9]+ +0  change the other rows of the batch, and their order: ok
 +[0-9]+ +[0-9]+ +[0-9.e-]+  decode one token at a time, with the cache: ok
largest: .*
control: 32 of 32 changes to inputs that outputs may depend on had an effect\$" "$out"
done
first=$out
expect 0 '' check --model recurrent
expect_out "$first"
expect 0 '' check --model model --data pairs.tsv --count 5 --json
expect_match '^\{"model":"model","pairs":5,"passed":true,"controls":10,"noticed":10,"checks":\{"later_tokens":\{"tried":10,"scores":[0-9]+,"largest":0\.0,"passed":true\},"padding":' "$out"
{ head -n 3 pairs.tsv; printf '1 2\t\n'; } >gap.tsv
expect 0 'qkv: note: gap.tsv: pairs left out because a side is empty or has more than 199 tokens: 1' check --model model --data gap.tsv
expect 0 '' check --model model --lang zh
expect_match '批量中的其他句子与次序改变: 通过' "$out"

# The book's encoder reads padding: reported and explained.
expect 1 '' check --model book
expect_match 'add padding, with other ids in it: FAILED, largest at output [0-9]+ of pair [0-9]+' "$out"
expect_match 'and their order: ok' "$out"
expect_match 'this encoder reads padding on purpose \(model.skip_padding is false, as in the book\): qkv always pads its sentences to 10 tokens' "$out"
expect 1 '' check --model book --json
expect_match '"passed":false,.*"padding":\{[^}]*"passed":false\},"batch_mates":\{[^}]*"passed":true\}' "$out"

# The book's prediction leaves every token at position 0: decoding with the cache differs from one full pass.
run train "${common[@]}" --kind transformer --heads 2 --ffn 16 --layers 1 --book-positions true -o standing
[[ $code == 0 ]] || mismatch "train: exit code $code: $err"
expect 1 '' check --model standing
expect_match 'and their order: ok
 +[0-9]+ +[0-9]+ +[0-9.e-]+  decode one token at a time, with the cache: FAILED' "$out"
expect_match 'on purpose this model decodes every token at position 0, as the book.s prediction does \(book.positions is true\)$' "$out"

# Refusals.
expect 2 $'qkv: error: the option --model DIR is missing\nhint: qkv train --preset transformer makes one in runs/transformer' check
expect 1 $'qkv: error: none: no such folder; expected one that qkv train wrote\nhint: qkv train --preset NAME makes one in runs/NAME; qkv train --help lists the presets' check --model none
expect 2 'qkv: error: --count: got "0", expected a whole number from 1 to 100000' check --model model --count 0
expect 1 'qkv: error: cannot open none.tsv: No such file or directory' check --model model --data none.tsv
printf '1 2 3 4 5 1 2 3\tun\n' >long.tsv
expect 1 'qkv: error: long.tsv: has no pair whose sentences both have 1 to 5 tokens' check --model learned --data long.tsv
