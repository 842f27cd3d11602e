# qkv train --init with BERT, RoBERTa and ViT folders: classes, hidden words and images; the same bits after a stop, with
# one thread and two, and without the folder; qkv export, whose round trip changes no bit; and what is refused.
golden=$(dirname "$test_file")/../golden/pretrained
cp -r "$golden"/{bert,roberta,bert-classes,sentence,vit} .
cp "$golden"/vit.{0,1}.png .
command -v python3 >/dev/null || exit 77
edit="$(dirname "$test_file")/../support/edit_pretrained.py"
edited() { rm -rf "$2"; cp -r "$1" "$2"; python3 "$edit" "${@:2}" || mismatch "edited $*"; }
epoch_loss() { grep '"kind":"epoch"' "$1/metrics.jsonl" | sed -n "${2}p" | grep -o '"loss":[0-9.e-]*' | cut -d: -f2; }
falls() { [[ $(awk "BEGIN { print $(epoch_loss "$1" "$2") < $3 * $(epoch_loss "$1" 1) }") == 1 ]] || mismatch "$1: the loss went from $(epoch_loss "$1" 1) to $(epoch_loss "$1" "$2")"; }
weights() { sha256sum <"$1/model.safetensors"; }

for i in 1 2 3; do
  printf '%s\t%s\n' 'the cat is asleep' animal 'a dog sees the red house' animal 'the house is small' thing 'we read two books' person 'they sing in the house' person 'the red book' thing
done >classes.tsv
cut -f1 classes.tsv >texts.txt

# A classifier of texts. The classes are those of the folder, in its order.
tune=(train --init bert-classes --text classes.tsv --rate 0.003 --batch-rows 6 --checkpoint-seconds 0)
run "${tune[@]}" --epochs 6 --valid-share 0.2 -o tuned
[[ $code == 0 ]] || mismatch "train: $err"
expect_match '14 texts and 4 for validation, 3 classes, [0-9,]+ parameters, tuned' "$err"
expect_match 'starts from bert-classes \(bert\)' "$err"
expect_match 'validation accuracy [01]\.[0-9]+' "$err"
falls tuned 6 0.6
for file in vocab.txt tokenizer_config.json; do cmp "bert-classes/$file" "tuned/tokenizer/$file" || mismatch "the tokenizer's $file"; done
[[ $(<tuned/init.json) == *"$(sha256sum <bert-classes/model.safetensors | cut -d' ' -f1)"* ]] || mismatch "init.json: $(<tuned/init.json)"
run classify --model tuned --text 'the cat is asleep' --json
expect_match '"class":"animal"' "$out"
run info tuned
expect_match 'tuned: a run of qkv train
model +text encoder, 3 layers, hidden 16.*
data +classes.tsv
tokenizer +WordPiece, [0-9]+ tokens
head +classes
classes +3: animal, thing, person
started +from bert-classes \(bert\)' "$out"
for command in 'embed --text cat' 'inspect the cat' 'check --count 2'; do
  run ${command%% *} --model tuned ${command#* }
  [[ $code == 0 ]] || mismatch "$command: $err"
done

# One thread or two, a stop after any epoch: the same bits; the folder may be gone by then.
run "${tune[@]}" --epochs 6 -o whole
for threads in 1 2; do
  run "${tune[@]}" --epochs 6 -o "threads$threads" --threads $threads
  [[ $(weights "threads$threads") == $(weights whole) ]] || mismatch "other bits with $threads threads: $err"
done
run "${tune[@]}" --epochs 2 -o parts
mv bert-classes away
run "${tune[@]}" --epochs 6 -o parts
[[ $code == 0 && $(weights parts) == $(weights whole) ]] || mismatch "resumed without the folder: $err"
mv away bert-classes

# Hidden words, and a head that the folder does not have.
run train --init bert --text texts.txt --epochs 8 --rate 0.01 --batch-rows 6 -o words
[[ $code == 0 ]] || mismatch "hidden words: $err"
expect_match '18 texts, hidden words, ' "$err"
falls words 8 0.8
run generate --model words --prompt 'the [MASK] is asleep' --candidates 2
[[ $code == 0 && $out =~ 'gap 1: ' ]] || mismatch "generate: $err $out"
run score --model words texts.txt
[[ $code == 0 ]] || mismatch "score: $err"
run train --init sentence --head classes --text classes.tsv --epochs 1 -o headed
expect_match 'note: new, with random values: classes.dense.weight, classes.dense.bias, classes.output.weight, classes.output.bias|note: new, with random values: classes.output.weight, classes.output.bias' "$err"
printf 'the cat\tgood\nthe house\tbad\n' >other.tsv
run train --init bert-classes --text other.tsv --epochs 1 -o other
expect_match 'note: new, with random values: classes.output.weight, classes.output.bias' "$err"
expect_match 'note: dropped: classifier.bias, classifier.weight' "$err"
run train --init tuned --text classes.tsv --epochs 1 -o again
[[ $code == 0 && $err =~ 'starts from tuned (run)' ]] || mismatch "a run as a start: $err"

# Images: what the folder says of them holds for the run.
mkdir -p images/{cat,dog}
cp vit.0.png images/cat; cp vit.1.png images/dog
run train --init vit --images images --epochs 3 --rate 0.01 -o seen
[[ $code == 0 ]] || mismatch "images: $err"
expect_match '2 images, 12 x 12 pixels in colour, 3 classes|2 images, 12 x 12 in colour pixels, 3 classes' "$err"
run classify --model seen vit.0.png vit.1.png
expect_match 'vit.0.png: cat .*vit.1.png: dog ' "$out"
mkdir -p letters/{a,b}
cp vit.0.png letters/a; cp vit.1.png letters/b
run train --init vit --images letters --epochs 1 -o letter
expect_match 'note: new, with random values: output.weight, output.bias' "$err"

# Export: a round trip changes no bit, of a folder and of a run.
cat >compare.py <<'PY'
import json, struct, sys
def tensors(folder):
    data = open(folder + "/model.safetensors", "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + n])
    return {k: (v["dtype"], v["shape"], data[8 + n:][v["data_offsets"][0]:v["data_offsets"][1]]) for k, v in header.items() if k != "__metadata__"}
a, b = tensors(sys.argv[1]), tensors(sys.argv[2])
missing = sorted(set(a) - set(b))
assert missing == sys.argv[3:], missing
assert all(a[k] == b[k] for k in b), [k for k in b if a.get(k) != b[k]]
x, y = (json.load(open(f + "/config.json")) for f in sys.argv[1:3])
for key in ("model_type", "architectures", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "layer_norm_eps", "hidden_act",
            "vocab_size", "max_position_embeddings", "type_vocab_size", "pad_token_id", "id2label", "image_size", "patch_size", "num_channels"):
    assert x.get(key) == y.get(key), (key, x.get(key), y.get(key))
PY
for name in bert roberta bert-classes vit; do
  run export --model $name -o copy-$name
  [[ $code == 0 ]] || mismatch "export $name: $err"
  python3 compare.py $name copy-$name || mismatch "the copy of $name differs"
done
run export --model sentence -o copy-sentence
expect_match 'note: not written, because qkv does not compute with it: pooler.dense.bias, pooler.dense.weight' "$err"
python3 compare.py sentence copy-sentence pooler.dense.bias pooler.dense.weight || mismatch 'the copy of sentence differs'
"$QKV" embed --model sentence texts.txt -o a.npy -q && "$QKV" embed --model copy-sentence texts.txt -o b.npy -q
cmp a.npy b.npy || mismatch 'vectors of the copy differ'
for name in tuned words seen; do
  run export --model $name -o folder-$name
  [[ $code == 0 ]] || mismatch "export $name: $err"
done
run classify --model tuned --text 'the cat is asleep' --json; wanted=$out
run classify --model folder-tuned --text 'the cat is asleep' --json; expect_out "$wanted"
run generate --model words --prompt 'the [MASK]' --json; wanted=$out
run generate --model folder-words --prompt 'the [MASK]' --json; expect_out "$wanted"
run classify --model seen --json vit.0.png vit.1.png; wanted=$out
run classify --model folder-seen --json vit.0.png vit.1.png; expect_out "$wanted"
run train --kind vision --images images --image-size 12 --patch 4 --hidden 16 --heads 2 --layers 1 --epochs 1 -q -o own
expect 1 'qkv: error: own: model.bias is false, but a ViT model of Hugging Face has true
hint: what is written: models that started from a pretrained folder (qkv train --init DIR), with the settings that it has' export --model own -o bad
[[ ! -e bad ]] || mismatch 'a folder for an export that was refused'

# What is refused.
expect 1 'qkv: error: sentence: its config.json names no head, so there is nothing to train
hint: --head words trains it to fill in hidden tokens, --head classes to say what a text is' train --init sentence --text texts.txt -o bad
expect 1 'qkv: error: texts.txt: line 1: expected a text, a tab and its class' train --init bert-classes --text texts.txt -o bad
printf 'a cat\tanimal\n' >one.tsv
expect 1 'qkv: error: one.tsv: has 1 classes, expected 2 to 100000' train --init bert-classes --text one.tsv -o bad
printf 'a cat\tnobody\n' >stranger.tsv
expect 1 'qkv: error: stranger.tsv: line 1: the training texts have no class "nobody"' train --init bert-classes --text classes.tsv --valid-text stranger.tsv -o bad
expect 1 'qkv: error: an encoder of texts is not trained from random weights here: training.init is not set
hint: --init DIR names the folder of a pretrained model' train --kind encoder --text texts.txt -o bad
edited bert-classes several config problem_type '"multi_label_classification"'
run train --init several --text classes.tsv -o bad
[[ $code == 1 && $err =~ 'several: each of its classes may be right at the same time (multi_label_classification)' ]] || mismatch "several: $err"
expect 1 'qkv: error: data.max_tokens is 30, but the model reads 24 at once' train --init bert --text texts.txt --max-tokens 30 -o bad
: >empty.txt
expect 1 'qkv: error: empty.txt: is empty, expected text' train --init bert --text empty.txt -o bad
run train --init vit --text texts.txt -o bad
[[ $code == 2 ]] || mismatch "texts for ViT: $err"
[[ ! -e bad ]] || mismatch 'a folder of a training that was refused'
