# qkv with language models of pretrained folders: generate, score, inspect, check and info on tiny Llamas (in shards, tied,
# as llama2.c writes it) and a tiny GPT-2, and everything in such folders that is refused.
golden=$(dirname "$test_file")/../golden/pretrained
cp -r "$golden"/{llama,llama_tied,llama2c,gpt2} .
command -v python3 >/dev/null || exit 77
edit="$(dirname "$test_file")/../support/edit_pretrained.py"
# edited FROM NAME HOW...: a copy of a folder with a change.
edited() { rm -rf "$2"; cp -r "$1" "$2"; python3 "$edit" "${@:2}" || mismatch "edited $*"; }

# Greedy texts are those of transformers, whatever files the weights are in.
continued() { expect 0 '' generate --model "$1" --prompt 'a dog' --temperature 0 --max-tokens 12; expect_out 'a dog sees the red house'; }
for folder in llama llama_tied llama2c gpt2; do continued "$folder"; done
edited llama_tied half half; continued half
edited llama_tied brain brain; continued brain
edited gpt2 parts shards; continued parts
mkdir -p cache/blobs cache/snapshots/1
for file in llama/*; do
  cp "$file" "cache/blobs/$(basename "$file").blob" && ln -s "../../blobs/$(basename "$file").blob" "cache/snapshots/1/$(basename "$file")"
done
continued cache/snapshots/1

# Sampling depends on the seed alone; a stop string and a batch; the prompt is the first token where it is empty.
run generate --model llama --prompt 'we' --temperature 1 --top-p 0.9 --seed 3 --samples 3 --max-tokens 8
first=$out
run generate --model llama --prompt 'we' --temperature 1 --top-p 0.9 --seed 3 --samples 3 --max-tokens 8 --threads 1
[[ $code == 0 && -n $first && $out == "$first" ]] || mismatch "sampling: $err $out"
expect 0 '' generate --model gpt2 --prompt 'a dog' --max-tokens 12 --stop ' red' --only-new
expect_out ' sees the'
printf 'a dog\nthe cat\n' >prompts.txt
expect 0 '' generate --model llama2c --temperature 0 --max-tokens 12 prompts.txt
expect_out $'a dog sees the red house\n\nthe cat is asleep'
run generate --model llama2c --prompt '' --temperature 0 --max-tokens 12
[[ $code == 0 && $out == [a-z]* ]] || mismatch "empty prompt: $err $out"
expect 0 '' generate --model gpt2 --prompt '' --max-tokens 5
run generate --model llama --prompt 'a dog' --max-tokens 12 --json
expect_match '"prompt_tokens":\["<s>","a","do","g"|"prompt_tokens":\["<s>",' "$out"
expect_match '"end":"end"' "$out"
# A text longer than the positions: the model reads the last of it.
run generate --model gpt2 --prompt "$(printf 'a dog %.0s' {1..40})" --max-tokens 3
[[ $code == 0 && $err =~ 'the model reads the last 32' ]] || mismatch "long prompt: $err"

# Looking into it.
printf 'a dog sees the red house' >text.txt
expect 0 '' score --model llama text.txt
expect_match 'text.txt: perplexity 1\.[0-9]+, ' "$out"
plain=$out
expect 0 '' score --model llama2c text.txt
[[ ${out:0:28} == "${plain:0:28}" ]] || mismatch "score of llama2c: $out, of llama: $plain"
expect 0 '' score --model gpt2 text.txt --json
expect_match '"tokens":8' "$out"
expect 0 '' info llama
expect_match 'llama: a pretrained model
model +llama: language model \(causal\) of 32 tokens: transformer, 3 layers, hidden 16, 4 heads \(2 of keys\), ffn 24, positions rotary, norm pre, attention scaled-dot
tokenizer +SentencePiece, 310 tokens
texts +at most 32 tokens
parameters +15,[0-9]+, stored as F32
licence +the folder names none' "$out"
expect 0 '' info llama2c
expect_match 'model +llama: .*4 heads \(2 of keys\)' "$out"
expect 0 '' info gpt2 --json
expect_match '"architecture": "gpt2"' "$out"
for folder in llama llama2c gpt2; do
  expect 0 '' check --model $folder --count 4
  expect_match 'decode one token at a time, with the cache: ok' "$out"
done
run inspect --model llama 'a dog sees the red house' -o heat.svg
[[ $code == 0 && -s heat.svg ]] || mismatch "inspect: $err"
run inspect --model gpt2 'a dog sees the red house' --json
expect_match '"decoder"' "$out"
run inspect --model llama2c 'a dog sees the red house' -o maps.npz
[[ $code == 0 ]] || mismatch "inspect to npz: $err"
run info maps.npz
expect_match 'decoder.*3, 4, [0-9]+, [0-9]+' "$out"
run inspect --model gpt2 "$(printf 'a dog %.0s' {1..40})"
[[ $code == 1 && $err =~ 'but the model reads 32 at once' ]] || mismatch "long text: $err"

# What is refused.
refused() { local hint=$1; shift; expect 1 "$hint" generate --prompt 'a dog' --model "$@"; }
edited gpt2 other config model_type '"rwkv"'
refused 'qkv: error: other/config.json: "model_type" is "rwkv"; qkv opens marian, llama, gpt2' other
edited llama_tied missing drop model.layers.1.mlp.up_proj.bias
refused 'qkv: error: missing: has no tensor "model.layers.1.mlp.up_proj.bias", which a Llama model of its config.json needs' missing
edited llama_tied over config mlp_bias false
refused 'qkv: error: over/model.safetensors: a Llama model of its config.json has no tensor "model.layers.0.mlp.down_proj.bias"' over
edited gpt2 shape reshape transformer.h.1.attn.c_attn.weight '[48,16]'
refused 'qkv: error: shape/model.safetensors: "transformer.h.1.attn.c_attn.weight" has shape (48, 16), but config.json says (16, 48)' shape
edited llama_tied heads config num_key_value_heads 4
refused 'qkv: error: heads/model.safetensors: "model.layers.0.self_attn.k_proj.weight" has shape (8, 16), but config.json says (16, 16)' heads
edited llama_tied uneven config num_key_value_heads 3
refused 'qkv: error: uneven/config.json: "num_attention_heads" 4 is not a multiple of "num_key_value_heads" 3' uneven
edited llama_tied wide config head_dim 8
refused 'qkv: error: wide/config.json: "head_dim" is 8, expected 4 to 4' wide
edited llama_tied rope config rope_scaling '{"rope_type": "yarn", "factor": 4.0}'
refused 'qkv: error: rope/config.json: "rope_scaling": "rope_type" is "yarn", expected "default"' rope
edited gpt2 scaled config scale_attn_by_inverse_layer_idx true
refused 'qkv: error: scaled/config.json: "scale_attn_by_inverse_layer_idx" is true, expected false' scaled
edited gpt2 activation config activation_function '"quick_gelu"'
run generate --model activation --prompt a
[[ $code == 1 && $err =~ 'activation/config.json: "activation_function" is "quick_gelu", expected one of relu, gelu' ]] || mismatch "activation: $err"
edited llama_tied nan brain; python3 "$edit" nan nan model.norm.weight
run generate --model nan --prompt a
[[ $code == 1 && $err =~ 'nan/model.safetensors: tensor "model.norm.weight": value 2 is '-?'nan, expected finite numbers' ]] || mismatch "nan: $err"
cp -r llama lost; rm lost/model-00002-of-00003.safetensors
refused 'qkv: error: lost: the file model-00002-of-00003.safetensors is missing, which model.safetensors.index.json names' lost
edited gpt2 out shards ../gpt2/model.safetensors
run generate --model out --prompt a
[[ $code == 1 && $err =~ 'is in "../gpt2/model.safetensors", expected a .safetensors file of this folder' ]] || mismatch "out: $err"
edited llama_tied huge config hidden_size 4611686018427387904
refused 'qkv: error: huge/config.json: "hidden_size" is 4611686018427387904, expected 1 to 65536' huge
edited gpt2 positions config n_positions 1000000000000
refused 'qkv: error: positions/config.json: "n_positions" is 1000000000000, expected 2 to 10000000' positions
edited gpt2 most config n_positions 10000000
refused 'qkv: error: most/model.safetensors: "transformer.wpe.weight" has shape (32, 16), but config.json says (10000000, 16)' most
edited llama_tied words config vocab_size 300
refused 'qkv: error: words: its tokenizer has 310 tokens, but its embedding only 300 rows' words
cp -r gpt2 mixed; cp llama/tokenizer.model mixed; rm mixed/vocab.json mixed/merges.txt
refused 'qkv: error: mixed: its tokenizer has 310 tokens, but its embedding only 300 rows' mixed
cp -r gpt2 none; rm none/vocab.json none/merges.txt
run generate --model none --prompt a
[[ $code == 1 && $err =~ 'none: has no tokenizer' ]] || mismatch "no tokenizer: $err"
cp -r gpt2 pickled; mv pickled/model.safetensors pickled/pytorch_model.bin
run generate --model pickled --prompt a
[[ $code == 1 && $err =~ 'opening such a file runs whatever code it contains' && $err =~ save_pretrained ]] || mismatch "pickled: $err"
cp -r llama_tied cut; truncate -s 30000 cut/model.safetensors
run generate --model cut --prompt a
[[ $code == 1 && $err =~ 'cut/model.safetensors: tensor ' ]] || mismatch "cut: $err"
run translate --model gpt2
[[ $code == 1 && $err =~ 'holds a language model, expected a translation model' && $err =~ 'qkv generate --model gpt2' ]] || mismatch "translate: $err"

# llama2.c: a header with other numbers, and files that end too early.
edited llama2c dim header 0 1000000000
refused 'qkv: error: dim/model.bin: dim is 1000000000, expected 1 to 65536: is this a model.bin of llama2.c?' dim
edited llama2c layers header 2 -1
refused 'qkv: error: layers/model.bin: n_layers is -1, expected 1 to 1024: is this a model.bin of llama2.c?' layers
edited llama2c more header 2 4
run generate --model more --prompt a
[[ $code == 1 && $err =~ 'more/model.bin: has 63,708 bytes, but its header asks for '[0-9,]+ ]] || mismatch "more layers: $err"
edited llama2c odd header 3 5
refused 'qkv: error: odd/model.bin: dim 16, n_heads 5 and n_kv_heads 2 do not fit together' odd
cp -r llama2c short; truncate -s 20 short/model.bin
refused 'qkv: error: short/model.bin: has 20 bytes, expected a header of 28 bytes and weights' short
cp -r llama2c less; truncate -s 60000 less/model.bin
run generate --model less --prompt a
[[ $code == 1 && $err =~ 'less/model.bin: has 60,000 bytes, but its header asks for 63,708' ]] || mismatch "cut model.bin: $err"
cp -r llama2c tokens; truncate -s 2000 tokens/tokenizer.bin
run generate --model tokens --prompt a
[[ $code == 1 && $err =~ 'tokens/tokenizer.bin: ends in token' ]] || mismatch "cut tokenizer.bin: $err"
edited llama2c infinite header 100 2139095040
run generate --model infinite --prompt a
[[ $code == 1 && $err =~ 'infinite/model.bin: tensor "tok_embeddings.weight": value '[0-9]+' is inf, expected finite numbers' ]] || mismatch "infinite: $err"
