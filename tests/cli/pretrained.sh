# qkv with pretrained folders: translate, inspect, score, align, check and info on a tiny Marian model as transformers
# writes it, float16, bfloat16 and shards, and everything in such a folder that is refused.
golden=$(dirname "$test_file")/../golden/pretrained
cp -r "$golden/marian" marian
command -v python3 >/dev/null || exit 77

edit="$(dirname "$test_file")/../support/edit_pretrained.py"
# edited NAME HOW...: a copy of the folder with a change.
edited() { rm -rf "$1"; cp -r marian "$1"; python3 "$edit" "$@" || mismatch "edited $*"; }

translated() { out=$(printf '%s\n' 狗看见红房子 我们读两本书 | "$QKV" translate --model "$@" 2>&1); }
translated marian
expect_out $'a dog sees the red house\nwe read two books'
translated marian --beam 1
expect_out $'a dog sees the red house\nwe read two books'

# The same model in other files.
edited shards shards; translated shards; expect_out $'a dog sees the red house\nwe read two books'
edited half half; translated half; expect_out $'a dog sees the red house\nwe read two books'
edited brain brain; translated brain; expect_out $'a dog sees the red house\nwe read two books'
mkdir -p cache/blobs cache/snapshots/1
for file in marian/*; do
  cp "$file" "cache/blobs/$(basename "$file").blob" && ln -s "../../blobs/$(basename "$file").blob" "cache/snapshots/1/$(basename "$file")"
done
translated cache/snapshots/1; expect_out $'a dog sees the red house\nwe read two books'
rm -rf no-target; cp -r marian no-target; rm no-target/target.spm
translated no-target; expect_out $'a dog sees the red house\nwe read two books'

# Looking into it.
expect 0 '' info marian
expect_match 'marian: a pretrained model
model +marian: transformer, 2 \+ 3 layers, hidden 16, 2 heads, ffn 24, positions sinusoidal, norm post, attention scaled-dot
tokenizer +.*, 80 tokens
texts +at most 40 tokens
parameters +[0-9,]+, stored as F32
licence +the folder names none' "$out"
printf -- '---\nlanguage: zh\nlicense: cc-by-4.0\n---\nText.\n' >shards/README.md
expect 0 '' info shards
expect_match 'licence +cc-by-4.0' "$out"
expect 0 '' check --model marian --count 4
expect_match 'decode one token at a time, with the cache: ok' "$out"
run inspect --model marian 我们读两本书 -o heat.svg
[[ $code == 0 && -s heat.svg ]] || mismatch "inspect: $err"
run inspect --model marian 我们读两本书 --json
expect_match '"layers"|"encoder"' "$out"
printf '我们读两本书\twe read two books\n' >pairs.tsv
echo 'we read two books' >reference.txt
echo '我们读两本书' >source.txt
run translate --model marian --force reference.txt source.txt
[[ $code == 0 ]] || mismatch "force: $err"
run align --model marian --pairs pairs.tsv
[[ $code == 0 && $out =~ 0-0 ]] || mismatch "align: $err $out"

# What is refused.
refused() { local hint=$1; shift; expect 1 "$hint" translate --model "$@"; }
mkdir empty
refused 'qkv: error: empty: has no config.yaml and no config.json; expected a folder that qkv train wrote, or a pretrained one' empty
edited other config model_type '"t5"'
refused 'qkv: error: other/config.json: "model_type" is "t5"; qkv opens marian, llama, gpt2' other
edited missing drop model.decoder.layers.1.fc2.bias
refused 'qkv: error: missing: has no tensor "model.decoder.layers.1.fc2.bias", which a Marian model of its config.json needs' missing
edited over rename final_logits_bias lm_head.bias
refused 'qkv: error: over: has no tensor "final_logits_bias", which a Marian model of its config.json needs' over
edited shape reshape model.decoder.layers.0.fc1.weight '[16,24]'
refused 'qkv: error: shape/model.safetensors: "model.decoder.layers.0.fc1.weight" has shape (16, 24), but config.json says (24, 16)' shape
edited nan brain; python3 "$edit" nan nan model.encoder.layers.0.fc1.bias
run translate --model nan
[[ $code == 1 && $err =~ 'nan/model.safetensors: tensor "model.encoder.layers.0.fc1.bias": value 2 is '-?'nan, expected finite numbers' ]] || mismatch "nan: $err"
edited lost shards; rm lost/model-00002-of-00002.safetensors
refused 'qkv: error: lost: the file model-00002-of-00002.safetensors is missing, which model.safetensors.index.json names' lost
edited out shards ../marian/model.safetensors
run translate --model out
[[ $code == 1 && $err =~ 'is in "../marian/model.safetensors", expected a .safetensors file of this folder' ]] || mismatch "out: $err"
edited huge config d_model 4611686018427387904
refused 'qkv: error: huge/config.json: "d_model" is 4611686018427387904, expected 1 to 65536' huge
edited words config vocab_size 70; python3 "$edit" words config decoder_vocab_size 70; python3 "$edit" words config pad_token_id 0
python3 "$edit" words config decoder_start_token_id 0; rm words/generation_config.json
refused 'qkv: error: words: its tokenizer has 80 tokens, but its embedding only 70 rows' words
edited pickled drop final_logits_bias; mv pickled/model.safetensors pickled/pytorch_model.bin
run translate --model pickled
[[ $code == 1 && $err =~ 'opening such a file runs whatever code it contains' ]] || mismatch "pickled: $err"
cp -r marian json; echo '{"model_type": ' >json/config.json
run translate --model json
[[ $code == 1 && $err =~ 'json/config.json: is not JSON' ]] || mismatch "json: $err"
printf '猫%.0s' {1..60} >long.txt
run translate --model marian long.txt
[[ $code == 1 && $err =~ 'a sentence may have at most 39' ]] || mismatch "long: $err"
run generate --model marian 猫
[[ $code == 1 && $err =~ 'holds a translation model, expected a language model' ]] || mismatch "generate: $err"
