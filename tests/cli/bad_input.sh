# Bad input: one clear line each, the right exit code, never a crash.
e='qkv: error:'

# The command line.
expect 2 "$e unknown command \"inof\"
hint: did you mean \"info\"?" inof
expect 2 "$e unknown command \"xyzzy\"
hint: qkv --help lists the commands" xyzzy
expect 2 "$e unknown command \"inof\"
hint: 是否想输入 \"info\"？" --lang zh inof
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
expect 2 "$e --threads: its value is missing" info --threads
expect 2 "$e --threads: got \"--quiet\", expected a whole number from 1 to 1024" info --threads --quiet
expect 2 "$e --seed is given twice" --seed 1 info --seed 2
expect 2 "$e --seed: got \"-1\", expected a whole number of at least 0" --seed -1 info
expect 2 "$e --quiet: takes no value, got \"maybe\"" info --quiet=maybe
expect 2 "$e --log-format: got \"pain\", expected one of bar, plain, json, none
hint: did you mean \"plain\"?" --log-format pain info
expect 2 "$e --lang: got \"fr\", expected one of en, zh" --lang fr info
run --kernel-target AVX9 info
expect_match '^2 qkv: error: --kernel-target: \[target\] this program has no "AVX9" kernels that this CPU can run; it has [A-Z0-9, ]+$' "$code $err"
expect 2 "$e unknown command \"a\\x0ab\\x1b[31m\"
hint: qkv --help lists the commands" $'a\nb\e[31m'

# Files that are not there or not files.
mkdir folder.npy
expect 0 '' info folder.npy
expect_out 'folder.npy: 0 files'
expect 1 "$e cannot open none.npy: No such file or directory" info none.npy
expect 1 "$e cannot open none.txt: No such file or directory" info none.txt
expect 1 "$e cannot open none.npy/x.npy: No such file or directory" info none.npy/x.npy
echo text >notes.txt
expect 1 "$e notes.txt: not a kind of file that qkv knows, expected .npy, .npz or .safetensors" info notes.txt
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

# One bad file among good ones: all are looked at, the code says that one failed.
expect 1 "$e cannot open none.npy: No such file or directory" info good.npy none.npy good.npy
expect_out 'good.npy: npy, 1 array, 2 elements, 75 bytes
  (2,)  float32  min 1  max 2  mean 1.5  sd 0.5
good.npy: npy, 1 array, 2 elements, 75 bytes
  (2,)  float32  min 1  max 2  mean 1.5  sd 0.5'
