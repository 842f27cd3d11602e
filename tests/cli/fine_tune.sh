# qkv train --init with a pretrained folder: what a run of it is, to the bit after a kill, with one thread and two, and
# without the folder; qkv export, whose round trip changes no bit; qkv prune and info on such folders and runs.
golden=$(dirname "$test_file")/../golden/pretrained
cp -r "$golden/marian" marian
command -v python3 >/dev/null || exit 77
edit="$(dirname "$test_file")/../support/edit_pretrained.py"
edited() { rm -rf "$1"; cp -r marian "$1"; python3 "$edit" "$@" || mismatch "edited $*"; }

# Pairs that the model has not learned: the wrong translations of what it knows.
for i in 1 2 3 4 5 6; do
  printf '%s\t%s\n' 猫睡着了 'we read two books' 狗看见红房子 'the house is small' 我们读两本书 'a cat sings' 房子很小 'a dog sees the red house'
done >pairs.tsv
tune=(train --init marian --data pairs.tsv --epochs 6 --rate 0.003 --batch-rows 4 --checkpoint-seconds 0)
epoch_loss() { grep '"kind":"epoch"' "$1/metrics.jsonl" | sed -n "${2}p" | grep -o '"loss":[0-9.e-]*' | cut -d: -f2; }
weights() { sha256sum <"$1/model.safetensors"; }

run "${tune[@]}" -o tuned
[[ $code == 0 ]] || mismatch "train --init: $err"
expect_match 'starts from marian \(marian\)' "$err"
expect_match '24 pairs, vocabularies 80 and 80, [0-9,]+ parameters, tuned' "$err"
[[ $(awk "BEGIN { print $(epoch_loss tuned 6) < 0.7 * $(epoch_loss tuned 1) }") == 1 ]] || mismatch "the loss went from $(epoch_loss tuned 1) to $(epoch_loss tuned 6)"
[[ $(<tuned/init.json) == *"$(sha256sum <marian/model.safetensors | cut -d' ' -f1)"* ]] || mismatch "init.json: $(<tuned/init.json)"
for file in source.spm target.spm vocab.json; do cmp "marian/$file" "tuned/tokenizer/$file" || mismatch "the tokenizer's $file"; done

# One thread or two, a stop after any epoch, a kill: the same bits. The folder may be gone by then.
for threads in 1 2; do
  run "${tune[@]}" -o "threads$threads" --threads $threads
  [[ $(weights "threads$threads") == $(weights tuned) ]] || mismatch "other bits with $threads threads: $err"
done
run train --init marian --data pairs.tsv --epochs 2 --rate 0.003 --batch-rows 4 --checkpoint-seconds 0 -o longer
mv marian elsewhere
run "${tune[@]}" -o longer
[[ $code == 0 && $err =~ 'resumed at epoch 3' ]] || mismatch "resuming without the folder: $err"
[[ $(weights longer) == $(weights tuned) ]] || mismatch "other bits after a stop"
run "${tune[@]}" -o fresh
[[ $code == 1 && $err =~ 'marian: no such folder' ]] || mismatch "a fresh run without the folder: $err"
mv elsewhere marian
killed=0
for wait in 0.05 0.1 0.15 0.2; do
  "$QKV" train --init marian --data pairs.tsv --epochs 400 --rate 0.003 --batch-rows 4 --checkpoint-seconds 0.001 -q -o killed & child=$!
  sleep $wait
  until [[ -e killed/checkpoints/last.safetensors ]] || ! kill -0 $child 2>/dev/null; do sleep 0.02; done
  kill -KILL $child 2>/dev/null && killed=$((killed + 1))
  wait $child 2>/dev/null
  [[ -d marian ]] && mv marian elsewhere  # from the first kill on
done
(( killed >= 2 )) || mismatch "only $killed kills"
run train --init marian --data pairs.tsv --epochs 400 --rate 0.003 --batch-rows 4 --checkpoint-seconds 0.001 -q -o killed
[[ $code == 0 ]] || mismatch "resuming after $killed kills: $err"
mv elsewhere marian
run train --init marian --data pairs.tsv --epochs 400 --rate 0.003 --batch-rows 4 --checkpoint-seconds 5 -q -o whole
[[ $(weights killed) == $(weights whole) ]] || mismatch "other bits after $killed kills"

# The result is a run.
out=$(printf '%s\n' 猫睡着了 房子很小 | "$QKV" translate --model whole 2>&1)
expect_out $'we read two books\na dog sees the red house'
run info whole
expect_match 'tokenizer +that of the pretrained model, vocabularies 80 and 80' "$out"
expect_match 'started +from marian \(marian\)' "$out"
expect 0 '' check --model whole --count 2
run inspect --model whole 我们读两本书 -o heat.svg
[[ $code == 0 && -s heat.svg ]] || mismatch "inspect: $err"
run train --init whole --data pairs.tsv --epochs 1 -o again
[[ $code == 0 && $err =~ 'starts from whole (run)' ]] || mismatch "train --init RUN: $err"

# A file on top of what the folder says; what it lacks and what is not needed is named.
cat >more.yaml <<'YAML'
data:
  pairs: pairs.tsv
model:
  layers: 1
  decoder_layers: 4
training:
  epochs: 1
YAML
run train --init marian -c more.yaml -o other
[[ $code == 0 ]] || mismatch "train --init -c: $err"
expect_match 'note: new, with random values: decoder.3.self.to_q.weight, decoder.3.self.to_q.bias, .* and 21 more, listed in init.json' "$err"
expect_match 'note: dropped: model.encoder.layers.1.fc1.bias, .* and 11 more, listed in init.json' "$err"
expect 1 'qkv: error: marian/model.safetensors: "model.encoder.layers.0.fc1.weight" has shape (24, 16), but the model of the configuration has (30, 16)' \
  train --init marian --data pairs.tsv --ffn 30 -o bad
[[ ! -e bad ]] || mismatch "a folder for a training that was refused"
expect 1 $'qkv: error: data.tokenizer is pretrained, but there is no folder that has it\nhint: --init DIR names the folder of a pretrained model' \
  train --data pairs.tsv --tokenizer pretrained -o bad
edited pickled drop final_logits_bias; mv pickled/model.safetensors pickled/pytorch_model.bin
run train --init pickled --data pairs.tsv -o bad
[[ $code == 1 && $err =~ 'opening such a file runs whatever code it contains' && ! -e bad ]] || mismatch "pickled: $err"
mkdir empty
expect 1 'qkv: error: empty: has no config.yaml and no config.json; expected a folder that qkv train wrote, or a pretrained one' \
  train --init empty --data pairs.tsv -o bad
printf '%s\t%s\n' "$(printf '猫%.0s' {1..60})" 'a cat' >long.tsv
run train --init marian --data long.tsv -o bad
[[ $code == 1 && $err =~ 'no training pair is left: data.max_tokens is 40' ]] || mismatch "long pairs: $err"

# Export: the same bits, the same settings, and a folder that opens.
run export --model marian --format hf -o copy
[[ $code == 0 && $out =~ 'copy: marian, '[0-9]+' tensors, '[0-9,]+' parameters in float32' ]] || mismatch "export: $err"
python3 - marian copy <<'PY' || mismatch "the round trip"
import json, struct, sys
def tensors(folder):
    data = open(folder + "/model.safetensors", "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    return {k: (v["dtype"], v["shape"], data[8 + n:][slice(*v["data_offsets"])])
            for k, v in json.loads(data[8:8 + n]).items() if k != "__metadata__"}
a, b = tensors(sys.argv[1]), tensors(sys.argv[2])
assert a == b, [k for k in a.keys() | b.keys() if a.get(k) != b.get(k)]
a, b = (json.load(open(f + "/config.json")) for f in sys.argv[1:])
skipped = {"dtype", "torch_dtype", "transformers_version", "init_std", "decoder_layerdrop", "encoder_layerdrop", "is_decoder", "use_cache",
           "static_position_embeddings"}
assert all(a.get(k) == b.get(k) for k in (a.keys() | b.keys()) - skipped), [(k, a.get(k), b.get(k)) for k in a.keys() | b.keys()]
a, b = (json.load(open(f + "/generation_config.json")) for f in sys.argv[1:])
assert all(a[k] == b[k] for k in a.keys() - {"transformers_version"}), (a, b)
PY
for file in source.spm target.spm vocab.json; do cmp "marian/$file" "copy/$file" || mismatch "the tokenizer's $file"; done
run export --model whole -o tuned-folder
[[ $code == 0 ]] || mismatch "export of a run: $err"
out=$(printf '%s\n' 猫睡着了 房子很小 | "$QKV" translate --model tuned-folder 2>&1)
expect_out $'we read two books\na dog sees the red house'
expect 1 'qkv: error: copy: already exists; choose another folder with -o' export --model marian -o copy
run train --data pairs.tsv --kind seq2seq --epochs 1 --embed 8 --hidden 8 --min-count 1 -q -o bahdanau
run export --model bahdanau -o bad
[[ $code == 1 && ${err%%$'\n'*} == 'qkv: error: bahdanau: model.kind is seq2seq, but a Marian model of Hugging Face has transformer' ]] || mismatch "export seq2seq: $err"
run train --data pairs.tsv --kind transformer --hidden 16 --ffn 16 --heads 2 --epochs 1 --min-count 1 --attention additive -q -o additive
run export --model additive -o bad
[[ $code == 1 && ${err%%$'\n'*} == 'qkv: error: additive: model.attention is additive, but a Marian model of Hugging Face has scaled-dot' ]] || mismatch "export additive: $err"
[[ ! -e bad ]] || mismatch "a folder for an export that was refused"
expect 2 'qkv: error: the option -o DIR is missing' export --model marian

# Pruned, it is a run, which no folder can express.
run prune --model marian --remove encoder.0.self:1 --data pairs.tsv -o smaller
[[ $code == 0 && $out =~ 'smaller: 15 of 16 heads' ]] || mismatch "prune: $err $out"
run translate --model smaller pairs.tsv
[[ $code == 0 ]] || mismatch "translate with a pruned model: $err"
run export --model smaller -o bad
[[ $code == 1 && ${err%%$'\n'*} == 'qkv: error: smaller: model.encoder_heads is "1 2", but a Marian model of Hugging Face has ""' ]] || mismatch "export of a pruned model: $err"
run prune --model marian --keep 0.5 -o bad
[[ $code == 1 && $err =~ 'names no sentence pairs to measure with' ]] || mismatch "prune without pairs: $err"
