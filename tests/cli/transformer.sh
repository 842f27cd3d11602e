# qkv train, translate, inspect, align and check with a Transformer, on a toy language: digits to words, in reverse.
names=(nul un deux trois quatre cinq)
for a in 0 1 2 3 4 5; do for b in 0 1 2 3 4 5; do for c in 0 1 2 3 4 5; do
  (( (a + b + c) % 2 )) || printf '%s %s %s\t%s %s %s\n' $a $b $c ${names[c]} ${names[b]} ${names[a]}
done; done; done >pairs.tsv
data=(--data pairs.tsv --tokenizer spaces --min-count 1 --layers 2 --ffn 64 --rate 0.005 --batch-rows 16 --seed 3 --dropout 0)
settings=("${data[@]}" --kind transformer --hidden 32 --heads 4)

# A model with any kind of positions learns to reverse, and decoding agrees with training.
for positions in sinusoidal learned relative rotary alibi; do
  run train "${settings[@]}" --epochs 80 --positions $positions -o $positions -q
  [[ $code == 0 ]] || mismatch "train with $positions: exit code $code: $err"
  out=$(printf '1 2 3\n\n5 4 3\n' | "$QKV" translate --model $positions)
  expect_out $'trois deux un\n\ntrois quatre cinq'
done
out=$(printf '1 2 3\n' | "$QKV" translate --model rotary --beam 3 --json --attention)
expect_match '"text":"trois deux un"' "$out"
expect_match '"tokens":\["trois","deux","un","<eos>"\],"attention":\[\[\[\[[^]]*\](,\[[^]]*\]){3}\],\[\[' "$out"  # layers of heads of rows, one per token

# Same bits at any number of threads; with recomputed blocks, equal up to rounding.
for change in '--threads 1' '--threads 3'; do
  run train "${settings[@]}" --epochs 3 -o bits $change --restart -q
  sum=$(sha256sum <bits/model.safetensors)
  [[ ${first:=$sum} == "$sum" ]] || mismatch "$change: other bits"
done
run train "${settings[@]}" --epochs 3 -o again --recompute true -q
[[ $code == 0 ]] || mismatch "recompute: $err"
losses() { sed -n 's/.*"loss":\([0-9.]*\).*/\1/p' "$1/metrics.jsonl"; }
paste <(losses bits) <(losses again) | awk '{ d = $1 - $2; if (d > 1e-4 || d < -1e-4) exit 1 } END { exit NR == 3 ? 0 : 1 }' ||
  mismatch "recompute: other losses: $(losses bits) and $(losses again)"

# Shared key heads, pre-norm, gelu, tied subwords, additive scores, uneven depth.
run train "${settings[@]}" --epochs 2 --key-heads 2 --norm pre --activation gelu --bias true --decoder-layers 1 -o other -q
[[ $code == 0 ]] || mismatch "options: $err"
# Additive scores with grouped keys learn to reverse like products.
run train "${settings[@]}" --epochs 80 --attention additive --key-heads 2 -o additive -q
[[ $code == 0 ]] || mismatch "additive: $err"
out=$(printf '1 2 3\n5 4 3\n' | "$QKV" translate --model additive --beam 2)
expect_out $'trois deux un\ntrois quatre cinq'
run train --data pairs.tsv --preset transformer-tiny --vocabulary 30 --epochs 1 -o tiny -q
[[ $code == 0 ]] || mismatch "transformer-tiny: $err"

# Settings that cannot work are refused before anything is read or written.
bad() { fails 1 "$@"; }
fails() { local code=$1 message=$2; shift 2; expect "$code" "qkv: error: $message" train "${data[@]}" "$@" -o bad; [[ ! -e bad ]] || mismatch "a folder for a bad run"; }
bad 'model.hidden 32 is not divisible by model.heads 5' --kind transformer --hidden 32 --heads 5
bad 'model.heads 4 is not a multiple of model.key_heads 3' --kind transformer --hidden 32 --key-heads 3
fails 2 'model.cell is a setting of seq2seq, but model.kind is transformer' --kind transformer --cell lstm
fails 2 'model.bidirectional is a setting of seq2seq, but model.kind is transformer' --kind transformer --bidirectional true
fails 2 'model.ffn is a setting of transformer, language, vision, encoder, but model.kind is seq2seq' --kind seq2seq
fails 2 '--kind seq2seq: the preset transformer-tiny is a transformer' --preset transformer-tiny --kind seq2seq
bad 'model.tied needs one vocabulary for both sides, but data.shared_vocabulary is false' --kind transformer --tied true
bad 'model.max_positions is 3, but a sentence has 4 tokens including <eos>; data.max_tokens leaves out longer ones' --kind transformer --positions learned --max-positions 3
bad 'model.positions rotary needs heads of even width, but model.hidden 28 / model.heads 4 is odd' --kind transformer --hidden 28 --positions rotary

"$QKV" train --preset d2l-bahdanau --data pairs.tsv --dump-config >recurrent.yaml
expect 1 $'qkv: error: recurrent.yaml: model.kind is seq2seq, but the preset d2l-transformer is a transformer\nhint: use the file without --preset' \
  train --preset d2l-transformer -c recurrent.yaml -o bad
[[ ! -e bad ]] || mismatch "a folder for a bad run"
bad 'data.shared_vocabulary needs data.tokenizer bpe or unigram, got spaces' --kind transformer --shared-vocabulary true --tied true

# A learned table of positions is limited: the error gives the line of a sentence that is too long.
run train "${settings[@]}" --epochs 1 --positions learned --max-positions 4 -o short -q
printf '1 2 3\n1 2 3 4\n' >long.txt
expect 1 'qkv: error: long.txt: line 2: has 4 tokens; a sentence may have at most 3: the model has learned no further positions' translate --model short long.txt
out=$(printf '1 2 3\n' | "$QKV" translate --model short --max-length 50 2>err.txt)
[[ $(wc -w <<<"$out") -le 3 ]] || mismatch "a translation past the learned table"
[[ ! -s err.txt ]] || expect_match '^qkv: note: standard input: line 1: cut off after 3 tokens \(the model has learned no further positions\)$' "$(cat err.txt)"
expect 1 'qkv: error: the sentence: has 4 tokens; a sentence may have at most 3: the model has learned no further positions' inspect --model short 1 2 3 4
expect 1 'qkv: error: --steps 9: the model has learned 4 positions' inspect --model short --steps 9 1 2 3
printf '1 2 3\tun\n1 2 3\tun un un un\n' >two.tsv
printf '0-0\n' >one.align
expect 1 'qkv: error: two.tsv has 2 lines, but one.align has 1' inspect --model short --pairs two.tsv --line 1 --gold one.align
expect 1 'qkv: error: two.tsv: line 2: has 4 tokens; a sentence may have at most 3: the model has learned no further positions' inspect --model short --pairs two.tsv --line 2

# Weights of another model are refused by name.
cp learned/model.safetensors rotary/model.safetensors
run translate --model rotary long.txt
[[ $code == 1 && $err == *'rotary/model.safetensors: the model of the configuration has no "decoder.embedding.positions"'* ]] || mismatch "another model's weights: $code $err"

# An unfinished run is used, with a note; unknown words that the model has in another form are shown.
run train "${settings[@]}" --epochs 2 --checkpoint-seconds 0 -o half -q
rm half/model.safetensors
note='qkv: note: the run is not finished; its weights so far are used: half/checkpoints/last.safetensors'
printf '1 2 3\ttrois deux un\n' >three.tsv
for command in 'translate --model half long.txt' 'inspect --model half 1 2 3 -o half.svg' 'align --model half --pairs three.tsv' 'check --model half'; do
  run $command
  [[ $code == 0 && $err == "$note"* ]] || mismatch "$command: $code $err"
done
printf '1 zwei 3.\n' >forms.txt
run translate --model alibi forms.txt
expect_match 'qkv: note: forms.txt: line 1: not in the vocabulary: zwei, 3\. \(it has: 3\)' "$err"
run align --model alibi --source forms.txt --target forms.txt
expect_match 'qkv: note: forms.txt: line 1: not in the vocabulary: zwei, 3\.' "$err"
expect 0 '' info alibi
run info additive
expect_match '4 heads \(2 of keys\)' "$out"
expect 2 $'qkv: error: the preset d2l-transformer needs the book\'s fra.txt: give it with --data FILE\nhint: qkv data fra-eng -o fra.txt fetches it' train --preset d2l-transformer -o bad

# A file of an older version has the settings of all kinds of models, and can still be read.
for kind in seq2seq transformer; do
  run train -c "$(dirname "$test_file")/../golden/old_config_$kind.yaml" --dump-config
  [[ $code == 0 ]] || mismatch "old configuration of $kind: $err"
  expect_match "kind: $kind" "$out"
done

# The kind may come from the command line if the file does not give it.
printf 'model:\n  heads: 2\ntraining:\n  epochs: 3\n' >heads.yaml
run train -c heads.yaml --kind transformer --dump-config
[[ $code == 0 ]] || mismatch "--kind beside a file: $err"
expect_match 'kind: transformer' "$out"
expect_match 'heads: 2' "$out"
printf 'model:\n  kind: seq2seq\n' >kind.yaml
expect 2 'qkv: error: --kind transformer: kind.yaml is a seq2seq' train -c kind.yaml --kind transformer --dump-config

# Your own data replaces all files that a preset names.
printf 'data:\n  pairs: pairs.tsv\n' >pairs.yaml
for own in '--data pairs.tsv' '-c pairs.yaml'; do
  run train --preset multi30k-en-fr $own --dump-config
  [[ $code == 0 ]] || mismatch "$own: $err"
  expect_match 'pairs: pairs.tsv' "$out"
  expect_match 'valid_source: ""' "$out"
done

# With a JSON log, standard error contains only JSON, even when a run resumes.
run train "${settings[@]}" --epochs 1 -o resumed -q
run train "${settings[@]}" --epochs 2 -o resumed --log-format json
[[ $code == 0 && -n $err ]] || mismatch "resuming with a JSON log: $err"
while IFS= read -r line; do [[ $line == '{'* ]] || mismatch "not JSON: $line"; done <<<"$err"
