# Bad input: one clear line each, the right exit code, never a crash.
e='qkv: error:'

# The command line.
expect 2 "$e unknown command \"inof\"
hint: did you mean \"info\"?" inof
expect 2 "$e unknown command \"xyzzy\"
hint: qkv --help lists the commands" xyzzy
expect 2 "qkv：错误：未知的命令“inof”
提示：是否想输入“info”？" --lang zh inof
expect 2 "$e unknown option \"--jsn\"
hint: did you mean \"--json\"?" info --jsn
expect 2 "$e unknown option \"--thread\"
hint: did you mean \"--threads\"?" --thread 4 info
expect 2 "$e unknown option \"--thread\"
hint: did you mean \"--threads\"?" info --thread=4
expect 2 "$e unknown option \"--xyzzy\"" info --xyzzy
expect 2 "$e unknown option \"-x\"" -x
expect 2 "$e --threads: got \"0\", expected a whole number from 1 to 1024" --threads 0 info
expect 2 "$e --threads: got \"0\", expected a whole number from 1 to 1024" info --threads=0
expect 2 "$e --threads: got \"-3\", expected a whole number from 1 to 1024" info --threads -3
expect 2 "$e --threads: got \"1025\", expected a whole number from 1 to 1024" info --threads 1025
expect 2 "$e --threads: got \"2x\", expected a whole number from 1 to 1024" info --threads 2x
expect 2 "$e --threads: got \"99999999999999999999\", expected a whole number from 1 to 1024" info --threads 99999999999999999999
expect 2 "$e --threads needs a value" info --threads
expect 2 "$e --threads: got \"--quiet\", expected a whole number from 1 to 1024" info --threads --quiet
expect 2 "$e --seed is given twice" --seed 1 info --seed 2
expect 2 "$e --seed: got \"-1\", expected a whole number of at least 0" --seed -1 info
expect 2 "$e --quiet takes no value, got \"maybe\"" info --quiet=maybe
expect 2 "$e --log-format: got \"pain\", expected one of bar, plain, json, none
hint: did you mean \"plain\"?" --log-format pain info
expect 2 "$e --lang: got \"fr\", expected one of en, zh" --lang fr info
run --kernel-target AVX9 info
expect_match '^2 qkv: error: --kernel-target: \[target\] this program has no "AVX9" kernels that this CPU can run; it has [A-Z0-9, ]+$' "$code $err"
expect 2 "$e unknown command \"a\\x0ab\\x1b[31m\"
hint: qkv --help lists the commands" $'a\nb\e[31m'

# Paths that do not exist or are not files.
mkdir folder.npy
expect 0 '' info folder.npy
expect_out 'folder.npy: 0 files'
expect 1 "$e cannot open none.npy: No such file or directory" info none.npy
expect 1 "$e cannot open none.txt: No such file or directory" info none.txt
expect 1 "$e cannot open none.npy/x.npy: No such file or directory" info none.npy/x.npy
echo text >notes.txt
expect 1 "$e notes.txt: unknown kind of file, expected .npy, .npz or .safetensors" info notes.txt
expect 1 "$e /dev/null is not a regular file" info /dev/null
mkfifo pipe.npy
expect 1 "$e pipe.npy is not a regular file" info pipe.npy

# Arrays that are cut off, damaged or of another kind.
: >empty.npy
expect 1 "$e empty.npy: 0 bytes are too few for an .npy file" info empty.npy
npy big.npy '>f4' '(1,)' '0000'
expect 1 "$e big.npy: big-endian '>f4' not supported, expected '<f4', '<f8', '<i4', '<i8', '|b1' or '|u1'" info big.npy
npy short.npy '<f4' '(3,)' '\0\0\x80\x3f'
expect 1 "$e short.npy: shape (3,) of float32 needs 12 bytes, the file has 4" info short.npy
npy huge.npy '<f4' '(1000000000000, 1000000)' ''
expect 1 "$e huge.npy: shape (1000000000000, 1000000) of float32 needs 4000000000000000000 bytes, the file has 0" info huge.npy
npy over.npy '<f4' '(4294967296, 4294967296)' ''
expect 1 "$e over.npy: too many elements: a size of 4294967296 on top of the axes before it" info over.npy
npy good.npy '<f4' '(2,)' '\0\0\x80\x3f\0\0\0\x40'
expect 0 '' info good.npy
for ((n = 0; n < $(stat -c %s good.npy); n += 5)); do
  head -c "$n" good.npy >cut.npy
  run info cut.npy
  expect_match '^1 qkv: error: cut.npy: [^'$'\n'']*$' "$code $err"
done
cp good.npy zip.npz
expect 1 "$e zip.npz: not an .npz file, or cut off: it has no zip directory at its end" info zip.npz

# safetensors.
{ printf '\xff\xff\xff\xff\xff\xff\xff\x7f'; head -c 4088 /dev/zero; } >long.safetensors
expect 1 "$e long.safetensors: header says 9223372036854775807 bytes, the file has 4,096" info long.safetensors
safetensors twice.safetensors '{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}' 'x'
expect 1 "$e twice.safetensors: \"a\" is in the header twice" info twice.safetensors
safetensors hole.safetensors '{"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}' 'xy'
expect 1 "$e hole.safetensors: 1 bytes before tensor \"a\" belong to no tensor" info hole.safetensors
safetensors fine.safetensors '{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}' 'abcd'
expect 0 '' info fine.safetensors
for ((n = 0; n < $(stat -c %s fine.safetensors); n += 3)); do
  head -c "$n" fine.safetensors >cut.safetensors
  run info cut.safetensors
  expect_match '^1 qkv: error: cut.safetensors: [^'$'\n'']*$' "$code $err"
done

# One bad file among good ones: all are read, and the exit code says that one failed.
expect 1 "$e cannot open none.npy: No such file or directory" info good.npy none.npy good.npy
expect_out 'good.npy: npy, 1 array, 2 elements, 75 bytes
  (2,)  float32  min 1  max 2  mean 1.5  sd 0.5
good.npy: npy, 1 array, 2 elements, 75 bytes
  (2,)  float32  min 1  max 2  mean 1.5  sd 0.5'

# Small files that once took all memory, or much of it, must stay below a limit. Not with sanitizers, which reserve more memory than
# there is.
small() { if grep -qE '__(asan|tsan)_init' "$QKV"; then "$@"; else (ulimit -v 1000000 && "$@"); fi; }
run_small() { small "$QKV" "$@" >"$folder/out" 2>"$folder/err" </dev/null; code=$? out=$(cat "$folder/out") err=$(cat "$folder/err"); }
for content in ',' '{},' '{training: {epochs: 3}},'; do
  printf '%s' "$content" >c.yaml
  run_small train -c c.yaml --dump-config
  expect_match "^1 $e c.yaml:1: something follows the settings, expected one YAML document of blocks\$" "$code $err"
done
{ printf '['; head -c 1000000 /dev/zero | tr '\0' ','; } >c.yaml
run_small train -c c.yaml --dump-config
expect_match "^1 $e c.yaml: has 1,000,001 bytes; a configuration has at most 262,144\$" "$code $err"
{ for ((i = 0; i < 16000; i++)); do printf 'c%d,' "$i"; done; echo y; for row in 1 2 3; do yes "$row," | head -n 16000 | tr -d '\n'; echo "$row"; done; } >wide.csv
run_small regress --data wide.csv
expect_match '^0 $' "$code $err"
run_small regress --data wide.csv --estimator local-linear
expect_match "^1 $e \[regression\] x has 16000 columns, local-linear takes at most 1024\$" "$code $err"
head -c 300000000 /dev/zero | gzip -c >bomb.tsv.gz
run_small data split bomb.tsv.gz --validation 1 --test 1 -o parts
expect_match "^1 $e bomb.tsv.gz: [0-9,]* bytes unpack to more than [0-9,]*; text does not compress that well\$" "$code $err"

# Messages are cut to a readable length, and are always UTF-8.
long=$(head -c 100000 /dev/zero | tr '\0' 7)
expect 2 "$e --threads: got \"${long:0:120}...\", expected a whole number from 1 to 1024" info --threads "$long"
accents=$(printf '\xc3\xa9%.0s' {1..2000})
expect 2 "$e unknown command \"${accents:0:60}...\"
hint: qkv --help lists the commands" "$accents"
expect 2 "$e unknown command \"x${accents:0:59}...\"
hint: qkv --help lists the commands" "x$accents"
{ printf 'model:\n  kind: '; head -c 200000 /dev/zero | tr '\0' k; echo; } >c.yaml
run train -c c.yaml --dump-config
expect_match "^1 $e c.yaml:2: model.kind: got \"k{120}\.\.\.\", expected one of " "$code $err"
expect 1 "$e cannot open a\\xffb\\x0a.npy: No such file or directory" info $'a\xffb\n.npy'
