# qkv info, and help and options of the program.
run --version
expect_match '^0 qkv [0-9]+\.[0-9]+\.[0-9]+$' "$code $out"
run
expect_match '^0 qkv [0-9.]+: attention.*usage: qkv COMMAND.*commands:.*  info  ' "$code $out"
short=$out
run --help
expect_match '--threads N.*--seed N.*--quiet.*--log-format bar\|plain\|json\|none.*--lang en\|zh.*--kernel-target NAME.*--version.*--help.*qkv info' "$out"
[[ $out == "${short%%qkv --help shows*}"* ]] || mismatch "the full help does not begin with the short one"
run info --help
by_option=$out
expect_match '^0 qkv info: .*usage: qkv info \[OPTIONS\] \[FILE\.\.\.\].*--json.*example:' "$code $out"
run help info
expect_out "$by_option"
run --lang zh info --help
expect_match '用法：qkv info .*示例：' "$out"
expect_match '命令：' "$(env LC_ALL=zh_CN.UTF-8 "$QKV" --help)"
expect_match 'commands:' "$(env LC_ALL=zh_CN.UTF-8 "$QKV" --lang=en --help)"
expect_match '命令：' "$(env -u LC_ALL LANG=zh_CN "$QKV")"

run info
expect_match '^0 qkv +[0-9.]+.compiler +[A-Z][A-Za-z]+ [0-9.]+.libraries +Highway [0-9.]+, oneTBB [0-9.]+, .*zlib [0-9.]+.*cpu +.+.kernels +[A-Z0-9]+ \(available: .*\).threads +[1-9][0-9]*$' "$code $out"
run --threads 3 info
expect_match 'threads +3$' "$out"
run info --threads=1 -q --seed 5 --log-format json
expect_match '^0 .*threads +1$' "$code $out"
last=$("$QKV" info | sed -n 's/.*(available: \(.*\))/\1/p' | sed 's/.*, //')
run info --kernel-target "$last"
expect_match "kernels +$last \\(available: .*$last\\)" "$out"
run info --json
expect_match '^0 \{.*"qkv": "[0-9.]+".*"kernels": \{.*"running": "[A-Z0-9]+".*"threads": [0-9]+.\}$' "$code $out"

# Files. Element bytes: 1.0 -inf NaN 3.0.
npy x.npy '<f4' '(2, 2)' '\0\0\x80\x3f\0\0\x80\xff\0\0\xc0\x7f\0\0\x40\x40'
safetensors m.safetensors '{"__metadata__":{"qkv.checkpoint":"1","step":"12"},"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"h":{"dtype":"BF16","shape":[2],"data_offsets":[4,8]}}' '\0\0\0\x40abcd'
expect 0 '' info x.npy m.safetensors
expect_out 'x.npy: npy, 1 array, 4 elements, 85 bytes
  (2, 2)  float32  min 1  max 3  mean 2  sd 1  NaN 1  inf 1
m.safetensors: checkpoint, 2 arrays, 3 elements, 174 bytes
  h  (2,)  BF16     cannot be read
  w  (1,)  float32  min 2  max 2  mean 2  sd 0
  qkv.checkpoint = 1
  step = 12'
expect 0 '' info --json x.npy
expect_out '{
  "files": [
    {
      "path": "x.npy",
      "kind": "npy",
      "bytes": 85,
      "arrays": [
        {
          "name": "",
          "dtype": "float32",
          "shape": [
            2,
            2
          ],
          "bytes": 16,
          "min": 1.0,
          "max": 3.0,
          "mean": 2.0,
          "sd": 1.0,
          "nan": 1,
          "inf": 1
        }
      ],
      "metadata": {}
    }
  ]
}'

# A folder, with a file of another kind, a damaged one and a hidden one; a name that begins with a dash; one with a control character.
mkdir -p run/sub
cp x.npy run/sub/a.npy
cp x.npy run/.hidden.npy
echo hello >run/notes.txt
head -c 20 x.npy >run/cut.npy
expect 1 'qkv: error: run/cut.npy: header says 59 bytes, the file has 20' info run
expect_out 'run: 3 files
run/notes.txt: 6 bytes
run/sub/a.npy: npy, 1 array, 4 elements, 85 bytes
  (2, 2)  float32  min 1  max 3  mean 2  sd 1  NaN 1  inf 1'
cp x.npy ./--json
mv ./--json ./--x.npy
expect 0 '' info -- --x.npy
expect_match '^--x.npy: npy, 1 array' "$out"
cp x.npy $'a\nb.npy'
expect 0 '' info $'a\nb.npy'
expect_match '^a\\x0ab.npy: npy' "$out"

# A folder that qkv train wrote: a summary, and the arrays only on request.
for n in 1 2 3 4 5 6 7 8 9; do printf '%s a b\tb a %s\n%s b\tb %s\n' $n $n $n $n; done >pairs.tsv
run train --data pairs.tsv --tokenizer spaces --min-count 1 --hidden 8 --embed 4 --valid-share 0.1 --epochs 3 -o trained -q
[[ $code == 0 ]] || mismatch "train: exit code $code: $err"
expect 0 '' info trained
expect_match '^trained: a run of qkv train
model       seq2seq, gru, 1 layer, hidden 8, embed 4, attention additive
data        pairs\.tsv
tokenizer   spaces, vocabularies ([0-9]+) and [0-9]+
training    3 of 3 epochs, loss [0-9]\.[0-9]{4}, validation loss [0-9]\.[0-9]{4}( \(lowest [0-9.]+, epoch [12]\))?
parameters  [0-9,]+ in model\.safetensors
files       10, [0-9,]+ bytes
  checkpoints/best\.safetensors +[0-9,]+
  checkpoints/last\.safetensors +[0-9,]+
  config\.yaml +[0-9,]+
  metrics\.jsonl +[0-9,]+
  model\.safetensors +[0-9,]+
  tokenizer\.source\.txt +13
  tokenizer\.target\.txt +13
  train\.log +[0-9,]+
  vocab\.source\.txt +[0-9]+
  vocab\.target\.txt +[0-9]+$' "$out"
[[ ${BASH_REMATCH[1]} == "$(wc -l <trained/vocab.source.txt)" ]] || mismatch "another size of the vocabulary than the file's: $out"
elements=$("$QKV" info trained/model.safetensors | sed -n '1s/.* \([0-9,]*\) elements.*/\1/p')
expect_match "parameters  $elements in" "$out"
expect 0 '' info trained --json
expect_match "\"kind\": \"run\".*\"epochs_done\": 3,.*\"parameters\": ${elements//,/}," "$out"
expect 0 '' info trained --all
expect_match '^trained: 10 files.*encoder\.embedding\.weight +\([0-9]+, 4\).*adam\.m\.' "$out"
# A folder of runs: a summary of each.
mkdir several several/inner && cp -r trained several/one && cp -r trained several/inner/two && cp trained/metrics.jsonl several/notes.txt
expect 0 '' info several
expect_match $'^several: 21 files\nseveral/inner/two: a run of qkv train\nmodel .*\nseveral/notes.txt: [0-9,]+ bytes\nseveral/one: a run of qkv train\nmodel ' "$out"
[[ $out != *adam* ]] || mismatch "arrays of runs: $out"
expect 0 '' info several/ --all
expect_match 'encoder\.embedding\.weight.*adam\.m\.' "$out"
# An unfinished run, counted without the state of the optimizer; a run before its first checkpoint; a damaged one.
rm trained/model.safetensors trained/checkpoints/best.safetensors
sed -i 's/epochs: 3 /epochs: 9 /' trained/config.yaml
expect 0 '' info trained
expect_match "training    3 of 9 epochs, .*parameters  $elements in checkpoints/last\.safetensors" "$out"
rm trained/checkpoints/last.safetensors trained/metrics.jsonl
expect 0 '' info trained
expect_match $'training    0 of 9 epochs\nparameters  no weights are saved yet\n' "$out"
echo 'data: 3' >trained/config.yaml
expect 1 'qkv: error: trained/config.yaml:1: the block "data" must hold "key: value" lines' info trained
run info --help --lang zh
expect_match '--all +对 qkv train 写出的文件夹' "$out"

# Streams that end or fail.
err=$({ "$QKV" info | head -0; } 2>&1)
expect_match '^$' "$err"
err=$("$QKV" info 2>&1 >/dev/full); code=$?
expect_match '^1 qkv: error: cannot write to standard output: No space left on device$' "$code $err"

# An interrupt in the middle of a large (sparse) file.
npy large.npy '|u1' '(40000000000,)' ''
truncate -s $(($(stat -c %s large.npy) + 40000000000)) large.npy
timeout --preserve-status -s INT 0.3 "$QKV" info large.npy >"$folder/out" 2>"$folder/err"; code=$?
expect_match '^130 $' "$code $(cat "$folder/out" "$folder/err")"
