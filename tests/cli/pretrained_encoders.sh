# qkv with encoders of pretrained folders: embed, generate (gaps), classify, score, inspect, check and info on tiny BERT,
# RoBERTa, sentence-transformers and ViT folders, and everything in such folders that is refused.
golden=$(dirname "$test_file")/../golden/pretrained
cp -r "$golden"/{bert,roberta,bert-classes,sentence,vit} .
cp "$golden"/vit.{0,1}.png .
command -v python3 >/dev/null || exit 77
edit="$(dirname "$test_file")/../support/edit_pretrained.py"
# edited FROM NAME HOW...: a copy of a folder with a change.
edited() { rm -rf "$2"; cp -r "$1" "$2"; python3 "$edit" "${@:2}" || mismatch "edited $*"; }
# F16 and BF16 weights of a folder as F32 with the same values.
cat >widen.py <<'PY'
import json, os, struct, sys
path = os.path.join(sys.argv[1], "model.safetensors")
data = open(path, "rb").read()
n = struct.unpack("<Q", data[:8])[0]
header, body = json.loads(data[8:8 + n]), data[8 + n:]
out = b""
for name, t in header.items():
    if name == "__metadata__":
        continue
    bits = body[t["data_offsets"][0]:t["data_offsets"][1]]
    wide = (b"".join(b"\0\0" + bits[i:i + 2] for i in range(0, len(bits), 2)) if t["dtype"] == "BF16" else
            struct.pack("<%df" % (len(bits) // 2), *struct.unpack("<%de" % (len(bits) // 2), bits)))
    t |= {"dtype": "F32", "data_offsets": [len(out), len(out) + len(wide)]}
    out += wide
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)
open(path, "wb").write(struct.pack("<Q", len(text)) + text + out)
PY

# One row per line; text 2 is longer than the ten tokens that the folder's modules allow.
printf 'The cat is asleep\ntwo DOGS read the red book and they sing in the house\n猫 sees, a fish!\n' >lines.txt
expect 0 'qkv: note: text 2 is cut off: its last 5 tokens were not read' embed --model sentence lines.txt -o a.npy
expect_out 'a.npy: 3 x 16'
expect 0 '' embed --model sentence lines.txt --most 24 -o whole.npy
expect 0 'qkv: note: text 2 is cut off: its last 5 tokens were not read' embed --model sentence --batch 1 --threads 1 lines.txt -o b.npy
cmp a.npy b.npy || mismatch 'vectors depend on the batch'
run embed --model sentence --text 'The cat is asleep' --json
expect_match '^\{"text":"The cat is asleep","tokens":7,"left_out":0,"vector":\[' "$out"
expect 0 '' embed --model sentence --cosine --text 'the cat' --text 'the cat'
expect_match ' 1\.000  1\.000  the cat' "$out"
run embed --model sentence --cosine --most 24 lines.txt -o cosines.svg
[[ $code == 0 && -s cosines.svg ]] || mismatch "cosines: $err"
run embed --model bert --pooling cls --text 'the cat' --json
[[ $code == 0 && $out =~ '"tokens":4' ]] || mismatch "cls: $err"
run embed --model bert --states --text 'the cat' -o states.npz
[[ $code == 0 ]] || mismatch "states: $err"
expect 0 '' info states.npz
expect_match 'states.1 +\(4, 16\) +float32' "$out"

# The same weights in other files.
for type in half brain; do
  edited sentence $type $type; run embed --model $type lines.txt -o $type.npy -q
  cp -r $type wide-$type; python3 widen.py wide-$type; run embed --model wide-$type lines.txt -o wide.npy -q
  cmp $type.npy wide.npy || mismatch "$type: $err"
done
edited sentence parts shards; run embed --model parts lines.txt -o parts.npy -q; cmp a.npy parts.npy || mismatch 'shards differ'

# Gaps, scores, classes.
run generate --model bert --prompt 'the [MASK] cat is asleep' --candidates 2
[[ $code == 0 && $out =~ 'gap 1: ' ]] || mismatch "gaps: $err $out"
filled=$out
run generate --model bert --prompt 'the [MASK] cat is asleep' --candidates 2 --threads 1
expect_out "$filled"
run generate --model roberta --prompt 'the [MASK] cat' --json
expect_match '^\{"prompt":"the \[MASK\] cat","text":".*","gaps":\[\[\{"token":' "$out"
expect 1 'qkv: error: the prompt has no gap: write [MASK] where a token is missing' generate --model bert --prompt 'the cat'
expect 2 'qkv: error: --temperature does not apply to this model (model.objective is masked)' generate --model bert --prompt 'the [MASK]' --temperature 1
expect 1 'qkv: error: this model does not fill gaps: its config.json names no head of words, such as BertForMaskedLM' generate --model sentence --prompt 'the [MASK]'
run score --model bert lines.txt
[[ $code == 0 && $out =~ 'lines.txt: perplexity '[0-9.]+', '[0-9.]+' nats per token, of 24 hidden tokens' ]] || mismatch "score: $err $out"
run classify --model bert-classes --text 'The cat is asleep' --json
expect_match '^\{"text":"The cat is asleep","class":"(animal|thing|person)","probability":' "$out"
expect 1 'qkv: error: bert: has no head of classes, such as BertForSequenceClassification; qkv embed makes vectors with it' classify --model bert --text cat

# Looking into them.
run inspect --model bert 'the cat is asleep' --json
expect_match '"tokens":\["\[CLS\]","the","cat","is","as","##leep","\[SEP\]"\],"encoder":' "$out"
run inspect --model bert 'the cat is asleep' --words --json
expect_match '"tokens":\["\[CLS\]","the","cat","is","asleep","\[SEP\]"\],"encoder":' "$out"
run inspect --model bert 'the cat is asleep' --values --rollout -o maps.npz
[[ $code == 0 ]] || mismatch "npz: $err"
expect 0 '' info maps.npz
expect_match 'encoder_rollout +\(3, 1, 7, 7\) +float32' "$out"
run inspect --model bert 'the cat is asleep' --layer 2 --head 3 -o one.npz -q
expect 0 '' info one.npz
expect_match 'encoder +\(1, 1, 7, 7\) +float32' "$out"
expect 1 'qkv: error: --layer 4: the last layer of the encoder attention is 3' inspect --model bert cat --layer 4
run inspect --model roberta 'the cat is asleep' -o heat.svg
[[ $code == 0 && -s heat.svg ]] || mismatch "inspect: $err"
expect 0 '' check --model bert --count 4
expect_match 'add padding, with other ids in it: ok' "$out"
expect_match 'control: 4 of 4 changes of a token' "$out"
expect 0 '' check --model roberta --data lines.txt
expect 0 '' info bert-classes
expect_match 'bert-classes: a pretrained model
model +bert: text encoder, 3 layers, hidden 16, 4 heads, ffn 24, positions learned, norm post, attention scaled-dot
tokenizer +WordPiece, [0-9]+ tokens
texts +at most 24 tokens
vectors +mean, 24 tokens
head +classes
classes +3: animal, thing, person
parameters +[0-9,]+, stored as F32
licence +the folder names none' "$out"
expect 0 '' info roberta
expect_match 'roberta: text encoder.*texts +at most 38 tokens' "$out"
printf -- '---\nlicense: apache-2.0\n---\n' >sentence/README.md
expect 0 '' info sentence
expect_match 'vectors +mean, length 1, 10 tokens' "$out"
expect_match 'licence +apache-2.0' "$out"

# Images: another size is brought to the model's, as the folder says.
expect 0 '' classify --model vit vit.0.png vit.1.png
expect_match '^vit.0.png: (cat|dog|fish) 0\.[0-9]+, .*vit.1.png: ' "$out"
run inspect --model vit --rollout --values vit.1.png -o seen.npz
[[ $code == 0 ]] || mismatch "inspect vit: $err"
expect 0 '' info seen.npz
expect_match 'weights +\(3, 4, 10, 10\) +float32' "$out"
run inspect --model vit vit.0.png -o seen.png
[[ $code == 0 && -s seen.png ]] || mismatch "inspect vit: $err"
expect 0 '' check --model vit --count 3
expect_match 'control: 9 of 9 patches had an effect' "$out"
expect 0 '' info vit
expect_match 'images +12 x 12 in colour' "$out"
expect_match 'classes +3: cat, dog, fish' "$out"
python3 - <<'PY'
import struct, zlib
def chunk(kind, data): return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
rows = b"".join(b"\0" + bytes([9, 99, 199, 128]) * 12 for _ in range(12))
open("clear.png", "wb").write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 12, 12, 8, 6, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
PY
run classify --model vit clear.png
[[ $code == 1 && $err =~ 'clear.png: ' && $err =~ transparent ]] || mismatch "transparent: $err"
edited vit fixed config image_size 16
expect 1 'qkv: error: fixed/preprocessor_config.json: images become 12 x 12 pixels, but config.json says 16 x 16' classify --model fixed vit.0.png
rm fixed/preprocessor_config.json
run classify --model fixed vit.0.png
[[ $code == 1 && $err =~ 'fixed/model.safetensors: "vit.embeddings.position_embeddings" has shape (1, 10, 16), but config.json says' ]] || mismatch "positions: $err"
cp -r vit stiff; echo '{"do_resize": false}' >stiff/preprocessor_config.json
run classify --model stiff vit.1.png
[[ $code == 1 && $err =~ 'vit.1.png: has 17 x 31 pixels, but the model was trained with 12 x 12' ]] || mismatch "size: $err"
edited vit plain config architectures '["ViTModel"]'
expect 1 'qkv: error: plain/config.json: "architectures" is ViTModel, expected ViTForImageClassification: this model has no classes' classify --model plain vit.0.png

# What is refused.
refused() { local hint=$1; shift; expect 1 "$hint" embed --text cat --model "$@"; }
edited bert other config model_type '"t5"'
refused 'qkv: error: other/config.json: "model_type" is "t5"; qkv opens marian, llama, gpt2, bert, roberta, xlm-roberta, vit' other
edited bert missing drop bert.encoder.layer.1.output.dense.bias
refused 'qkv: error: missing: has no tensor "bert.encoder.layer.1.output.dense.bias", which a BERT model of its config.json needs' missing
edited bert over rename cls.predictions.bias cls.predictions.more
refused 'qkv: error: over: has no tensor "cls.predictions.bias", which a BERT model of its config.json needs' over
edited sentence left rename pooler.dense.bias pooler.extra
refused 'qkv: error: left/model.safetensors: a BERT model of its config.json has no tensor "pooler.extra"' left
edited bert shape reshape bert.encoder.layer.0.intermediate.dense.weight '[16,24]'
refused 'qkv: error: shape/model.safetensors: "bert.encoder.layer.0.intermediate.dense.weight" has shape (16, 24), but config.json says (24, 16)' shape
edited bert nan brain; python3 "$edit" nan nan bert.embeddings.LayerNorm.weight
run embed --model nan --text cat
[[ $code == 1 && $err =~ 'nan/model.safetensors: tensor "bert.embeddings.LayerNorm.weight": value 2 is '-?'nan, expected finite numbers' ]] || mismatch "nan: $err"
edited bert lost shards; rm lost/model-00002-of-00002.safetensors
refused 'qkv: error: lost: the file model-00002-of-00002.safetensors is missing, which model.safetensors.index.json names' lost
edited bert huge config hidden_size 4611686018427387904
refused 'qkv: error: huge/config.json: "hidden_size" is 4611686018427387904, expected 1 to 65536' huge
edited bert words config vocab_size 20
run embed --model words --text cat
[[ $code == 1 && $err =~ 'words: its tokenizer has '[0-9]+' tokens, but its embedding only 20 rows' ]] || mismatch "words: $err"
edited roberta pads config pad_token_id 3
refused "qkv: error: pads: config.json says that padding is token 3, but the tokenizer's <pad> is 1: are the tokenizer's files of another model?" pads
edited bert heads config num_attention_heads 3
refused 'qkv: error: heads/config.json: "hidden_size" 16 is not a multiple of its 3 heads' heads
edited bert relative config position_embedding_type '"relative_key"'
refused 'qkv: error: relative/config.json: "position_embedding_type" is "relative_key", expected one of absolute' relative
edited bert decoder config is_decoder true
refused 'qkv: error: decoder/config.json: "is_decoder" is true, expected false' decoder
edited bert pickled drop bert.embeddings.LayerNorm.bias; mv pickled/model.safetensors pickled/pytorch_model.bin
run embed --model pickled --text cat
[[ $code == 1 && $err =~ 'opening such a file runs whatever code it contains' ]] || mismatch "pickled: $err"
cp -r sentence dense; echo '[{"type": "sentence_transformers.models.Transformer", "path": ""}, {"type": "sentence_transformers.models.Dense", "path": "2_Dense"}]' >dense/modules.json
refused 'qkv: error: dense/modules.json: has a module sentence_transformers.models.Dense; qkv has Transformer, Pooling and Normalize' dense
cp -r sentence outside; echo '[{"type": "sentence_transformers.models.Pooling", "path": "../sentence/1_Pooling"}]' >outside/modules.json
refused 'qkv: error: outside/modules.json: a module is in "../sentence/1_Pooling", expected a folder inside this one' outside
cp -r bert no-tokenizer; rm no-tokenizer/{vocab.txt,tokenizer_config.json}
run embed --model no-tokenizer --text cat
[[ $code == 1 && $err =~ 'no-tokenizer: has no tokenizer' ]] || mismatch "tokenizer: $err"
printf 'cat %.0s' {1..30} >long.txt
run inspect --model bert "$(cat long.txt)"
[[ $code == 1 && $err =~ 'the text has 32 tokens, but the model reads 24 at once' ]] || mismatch "long: $err"
expect 1 'qkv: error: --most 30: the model reads 24 tokens' embed --model bert --most 30 --text cat
run translate --model bert cat
[[ $code == 1 && $err =~ 'bert: holds a model that encodes texts, expected a translation model' ]] || mismatch "translate: $err"
run embed --model vit --text cat
[[ $code == 1 && $err =~ 'vit: holds a model that classifies images, expected a model that encodes texts' ]] || mismatch "embed vit: $err"
run embed --text cat --model bert -o x.txt
[[ $code == 2 && $err =~ 'expected a path that ends in .npy' && ! -e x.txt ]] || mismatch "output: $err"
