# qkv prune on a toy language: a smaller model translates, trains on, inspects and is pruned again; bad input.
names=(nul un deux trois quatre cinq)
for a in 0 1 2 3 4 5; do for b in 0 1 2 3 4 5; do for c in 0 1 2 3 4 5; do
  (( (a + b + c) % 2 )) || printf '%s %s %s\t%s %s %s\n' $a $b $c ${names[c]} ${names[b]} ${names[a]}
done; done; done >pairs.tsv
settings=(--data pairs.tsv --tokenizer spaces --min-count 1 --layers 2 --ffn 64 --rate 0.005 --batch-rows 16 --seed 3 --dropout 0
  --kind transformer --hidden 32 --heads 4)
run train "${settings[@]}" --epochs 60 -o run -q
[[ $code == 0 ]] || mismatch "train: $err"

# Heads go for good: the file is smaller, and the folder says how many each layer has.
run prune --model run --keep 0.5 -o smaller
[[ $code == 0 ]] || mismatch "prune: $code $err"
expect_match '^smaller: 12 of 24 heads, [0-9,]+ of [0-9,]+ parameters, [0-9.]+ % fewer products per token' "$out"
expect_match 'next: qkv train --init smaller' "$out"
(($(stat -c %s smaller/model.safetensors) < $(stat -c %s run/model.safetensors) - 12 * 4 * 32 * 8 * 4 / 2)) ||
  mismatch "the file is not smaller: $(stat -c %s run/model.safetensors smaller/model.safetensors)"
expect_match 'encoder_heads: "?[1-4] [1-4]' "$(cat smaller/config.yaml)"
for by in ablation confidence entropy; do
  run prune --model run --by $by --keep 0.5 -o by_$by -q
  [[ $code == 0 && -s by_$by/model.safetensors ]] || mismatch "--by $by: $code $err"
done

# It trains on and then translates as before; it inspects, and it is pruned again.
run train --init smaller --epochs 40 -o tuned -q
[[ $code == 0 ]] || mismatch "train --init: $err"
out=$(printf '1 2 3\n\n5 4 3\n' | "$QKV" translate --model tuned)
expect_out $'trois deux un\n\ntrois quatre cinq'
run inspect --model tuned '1 2 3' -o seen.svg
[[ $code == 0 && -s seen.svg ]] || mismatch "inspect: $err"
run prune --model tuned --keep 0.75 -o again -q
[[ $code == 0 && -s again/model.safetensors ]] || mismatch "pruned again: $err"
run prune --model run --remove encoder.0.self:1,3 --remove decoder.1.cross:2 -o named --json
expect_match '"heads":\[24,21\],"removed":\[\{"path":"encoder.0.self","head":1\},\{"path":"encoder.0.self","head":3\},\{"path":"decoder.1.cross","head":2\}\]' "$out"
run info smaller
[[ $code == 0 ]] || mismatch "info: $err"

# All four measures and how far they agree.
run prune --model run --compare --sentences 40 --json
expect_match '"rank_correlation":\{"gate":\{"gate":1\.0' "$out"
run prune --model run --curve --sentences 20 --plot curve.svg
[[ $code == 0 && -s curve.svg ]] || mismatch "curve: $err"

# Bad input.
expect 1 'qkv: error: all 4 heads of encoder.0.self would be removed: an attention needs at least one' \
  prune --model run --remove encoder.0.self:1,2,3,4 -o bad
expect 2 'qkv: error: --keep: expected a number above 0 and below 1, got 0' prune --model run --keep 0 -o bad
expect 2 'qkv: error: --keep: expected a number above 0 and below 1, got 1.5' prune --model run --keep 1.5 -o bad
expect 1 'qkv: error: keeping 0.1 of 24 heads leaves 2, but each of the 6 attentions needs at least one' \
  prune --model run --keep 0.1 -o bad
expect 1 'qkv: error: encoder.0.self has no head 5: it has 4, counted from 1' prune --model run --remove encoder.0.self:5 -o bad
expect 2 'qkv: error: --remove: expected PATH:HEADS such as encoder.0.self:1,3, got "encoder.0.self"' \
  prune --model run --remove encoder.0.self -o bad
expect 1 'qkv: error: keeping 0.99 of 24 heads removes none' prune --model run --keep 0.99 -o bad
expect 2 'qkv: error: --remove: expected PATH:HEADS such as encoder.0.self:1,3, got ":1"' prune --model run --remove :1 -o bad
expect 1 'qkv: error: run: already exists; choose another folder with -o' prune --model run --keep 0.5 -o run
[[ ! -e bad ]] || mismatch "a folder for a pruning that failed"
run train --init smaller --encoder-heads '4 4' --epochs 1 -o bad
[[ $code == 1 ]] || mismatch "another head count: exit code $code"
expect_match '^qkv: error: smaller/model.safetensors: "encoder\.[01]\.self\.to_[a-z]*\.weight" has shape \([0-9]+, [0-9]+\), but the model of the configuration has \([0-9]+, [0-9]+\)$' "$err"
expect 1 'qkv: error: model.encoder_heads is "4 x", expected 2 numbers of heads' train "${settings[@]}" --encoder-heads '4 x' -o bad
expect 1 'qkv: error: model.encoder_heads has 9 heads in a layer, expected 1 to 4' train "${settings[@]}" --encoder-heads '4 9' -o bad

# Kinds of attention: each trains and translates; settings that do not fit the text are one line.
for kind in window dilated block-sparse linear performer linformer nystrom; do
  run train "${settings[@]}" --attention-kind $kind --window 2 --global-tokens 1 --block 2 --landmarks 3 --rank 3 --epochs 60 -o $kind -q
  [[ $code == 0 ]] || mismatch "train $kind: $err"
  out=$(printf '1 2 3\n5 4 3\n' | "$QKV" translate --model $kind --beam 2)
  expect_out $'trois deux un\ntrois quatre cinq'
done
run inspect --model nystrom '1 2 3' -o seen.svg
[[ $code == 0 ]] || mismatch "inspect nystrom: $err"
lm=(--kind language --preset lm --context 16 --hidden 16 --layers 1 --heads 2 --ffn 32 --epochs 1)
expect 1 'qkv: error: model.window 500 is wider than the text: model.context is 16' train "${lm[@]}" --attention-kind window --window 500 -o bad
expect 1 'qkv: error: model.landmarks 20 are more than the tokens of the text: model.context is 16' \
  train "${lm[@]}" --objective masked --attention-kind nystrom --landmarks 20 -o bad
expect 1 'qkv: error: model.attention_kind nystrom mixes all positions and has no causal form: expected model.objective masked or spans' \
  train "${lm[@]}" --attention-kind nystrom -o bad
expect 1 'qkv: error: model.attention_kind linear needs model.attention scaled-dot, but it is additive' \
  train "${settings[@]}" --attention additive --attention-kind linear -o bad
