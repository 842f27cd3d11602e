# qkv attend: the worked example of the notes, masks, scorers, files, and what it refuses.
printf '57,83\n55,76\n' >q.csv
printf '51,70\n56,82\n56,82\n' >k.csv
printf '40,155\n43,159\n48,162\n' >v.csv
files=(--query q.csv --key k.csv --value v.csv)

expect 0 '' attend "${files[@]}"
expect_out ' 45.5  160.5
 45.5  160.5'
expect 0 '' attend "${files[@]}" --explain
expect_out 'inputs   Q (2, 2)  K (3, 2)  V (3, 2)
scores   Q K^T  (2, 3)
  8717  9998  9998
  8125  9312  9312
scale    divided by sqrt(2)  (2, 3)
  6163.85  7069.65  7069.65
  5745.24  6584.58  6584.58
softmax  over the keys of each query  (2, 3)
    0  0.5  0.5
    0  0.5  0.5
output   weights times V  (2, 2)
   45.5  160.5
   45.5  160.5'
expect 0 '' attend "${files[@]}" --score gaussian --bandwidth 2 --causal --explain
expect_out 'inputs   Q (2, 2)  K (3, 2)  V (3, 2)
scores   -u^2 / 2, u = |w (q - k)|  (2, 3)
  -25.625    -0.25    -0.25
     -6.5   -4.625   -4.625
mask     hidden keys become -inf: 3 of 6  (2, 3)
  -25.625     -inf     -inf
     -6.5   -4.625     -inf
softmax  over the keys of each query  (2, 3)
         1         0         0
  0.132964  0.867036         0
output   weights times V  (2, 2)
       40      155
  42.6011  158.468'
expect 0 '' attend "${files[@]}" --score dot --json
expect_out '{"shape":[2,2],"output":[[45.5,160.5],[45.5,160.5]],"empty_rows":0}'
expect 0 '' attend "${files[@]}" --score constant
expect_out '43.6667  158.667
43.6667  158.667'
expect 0 '' attend "${files[@]}" --score scaled-dot --scale 0.01 --json
expect_match '"output":\[\[45.49' "$out"
expect 0 '' attend "${files[@]}" --score constant --window 0,1
expect_out ' 41.5    157
 45.5  160.5'
printf '1,0,0\n0,1,0\n' >keep.csv
expect 0 '' attend "${files[@]}" --keep keep.csv
expect_out ' 40  155
 43  159'
hidden='\0\0\x80\xff'
npy bias.npy '<f4' '(2, 3)' "\0\0\0\0$hidden$hidden$hidden$hidden\0\0\0\0"
expect 0 '' attend "${files[@]}" --score constant --bias bias.npy
expect_out ' 40  155
 48  162'
expect 0 'qkv: note: 2 of 2 queries see no key; their output is 0' attend "${files[@]}" --valid-lens 0
expect_out '0  0
0  0'
expect 0 '' attend "${files[@]}" --valid-lens 0 --quiet --output empty.npy
expect_out ''
# Kernels of bounded support: a query far from all keys sees none.
expect 0 'qkv: note: 1 of 2 queries sees no key; its output is 0' attend "${files[@]}" --score boxcar --bandwidth 2
expect_out ' 45.5  160.5
    0      0'

# Written files are read again. Batches and heads: 1.0 2.0 as (1, 1, 2, 1), three axes as (1, 2, 1).
npy heads.npy '<f4' '(1, 1, 2, 1)' '\0\0\x80\x3f\0\0\0\x40'
npy batch.npy '<f4' '(1, 2, 1)' '\0\0\x80\x3f\0\0\0\x40'
expect 0 '' attend --query heads.npy --key heads.npy --value heads.npy -o out.npy --weights w.npy --plot heat.svg
expect_out ''
run info out.npy w.npy
expect_match '^0 out.npy: npy, 1 array, 2 elements.*\(1, 1, 2, 1\)  float32.*w.npy: .*\(1, 1, 2, 2\)  float32' "$code $out"
expect_match '^<svg .*Keys.*Queries|^<svg .*Queries.*Keys' "$(tr '\n' ' ' <heat.svg)"
expect 0 '' attend --query batch.npy --key batch.npy --value batch.npy --valid-lens 1 --plot heat.txt
expect_out '1
1'
[[ -s heat.txt ]] || mismatch "no heat.txt"
# Additive with W_q = W_k = w_v = 1: one hidden unit. Bilinear with W = 2. Salience with w = 1.
one='\0\0\x80\x3f'
safetensors additive.safetensors '{"W_q":{"dtype":"F32","shape":[1,1],"data_offsets":[0,4]},"W_k":{"dtype":"F32","shape":[1,1],"data_offsets":[4,8]},"w_v":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}}' "$one$one$one"
safetensors bilinear.safetensors '{"W":{"dtype":"F32","shape":[1,1],"data_offsets":[0,4]}}' '\0\0\0\x40'
safetensors w.safetensors '{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}' "$one"
one_dimension=(--query batch.npy --key batch.npy --value batch.npy)
expect 0 '' attend "${one_dimension[@]}" --score additive --params additive.safetensors
expect_out '1.50776
1.50107'
expect 0 '' attend "${one_dimension[@]}" --score bilinear --params bilinear.safetensors
expect_out ' 1.8808
1.98201'
expect 0 '' attend "${one_dimension[@]}" --score salience --params w.safetensors --temperature 0.5
expect_out '1.8808
1.8808'

# The command line.
expect 2 'qkv: error: --query FILE is missing
hint: qkv attend --help shows an example' attend
expect 2 'qkv: error: --value FILE is missing
hint: qkv attend --help shows an example' attend --query q.csv --key k.csv
expect 2 'qkv: error: --score: got "scald-dot", expected one of constant, salience, gaussian, boxcar, triangular, epanechnikov, negative-squared-distance, dot, scaled-dot, bilinear, cosine, vector-sum, additive
hint: did you mean "scaled-dot"?' attend "${files[@]}" --score scald-dot
expect 2 'qkv: error: --score additive needs --params FILE.safetensors with the tensor "W_q"' attend "${files[@]}" --score additive
expect 2 'qkv: error: --score dot has no parameters, but --params is given' attend "${files[@]}" --score dot --params w.safetensors
expect 2 'qkv: error: --scale is for --score scaled-dot, not gaussian' attend "${files[@]}" --score gaussian --scale 2
expect 2 'qkv: error: --bandwidth is for --score gaussian, boxcar, triangular and epanechnikov, not dot' attend "${files[@]}" --score dot --bandwidth 2
expect 2 'qkv: error: --bandwidth must be positive, got 0' attend "${files[@]}" --score gaussian --bandwidth 0
expect 2 'qkv: error: --temperature must be positive, got -1' attend "${files[@]}" --score cosine --temperature -1
expect 2 'qkv: error: --bandwidth and --params both give the width: use one of them' attend "${files[@]}" --score gaussian --bandwidth 2 --params w.safetensors
expect 2 'qkv: error: --temperature and --params both give the temperature: use one of them' attend "${files[@]}" --score cosine --temperature 2 --params w.safetensors
expect 2 'qkv: error: --temperature is for --score salience and cosine, not dot' attend "${files[@]}" --score dot --temperature 2
expect 1 'qkv: error: w.safetensors: --score cosine needs a tensor "temperature"' attend "${files[@]}" --score cosine --params w.safetensors
run attend --help
expect_match 'width for gaussian, boxcar, triangular and epanechnikov; .*W_q \(h, q\), W_k \(h, k\), w_v \(h\) for additive' "$(tr -s ' \n' ' ' <<<"$out")"
expect 2 'qkv: error: --window takes the number of keys to the left and to the right, such as 2,0, got "3"' attend "${files[@]}" --window 3
expect 2 'qkv: error: --valid-lens takes lengths such as 2,6 or an .npy file, got "2,x"' attend "${files[@]}" --valid-lens 2,x
expect 2 'qkv: error: --output must end in .npy, got "out.csv"' attend "${files[@]}" -o out.csv
expect 2 'qkv: error: --json and --explain exclude each other' attend "${files[@]}" --json --explain

# Inputs that do not fit, or do not exist.
printf '1,2,3\n' >wide.csv
expect 1 'qkv: error: [attend] query and key widths differ: (1, 3) x (3, 2)' attend --query wide.csv --key k.csv --value v.csv
expect 1 'qkv: error: [attend] the numbers of keys and values differ: (3, 2) and (2, 2)' attend --query q.csv --key k.csv --value q.csv
expect 1 'qkv: error: [attend] queries, keys and values have different numbers of axes: (1, 2, 1), (1, 1, 2, 1), (1, 2, 1)' attend --query batch.npy --key heads.npy --value batch.npy
expect 1 'qkv: error: [attend] lengths do not fit the weights (B, H, Lq, Lk): (2,) and (1, 1, 2, 3)' attend "${files[@]}" --valid-lens 2,3
expect 1 'qkv: error: [mask] a valid length cannot be negative, got -1' attend "${files[@]}" --valid-lens=-1
printf '1,0\n0,1\n1,1\n' >tall.csv
expect 1 'qkv: error: [attend] a keep mask does not fit the weights (B, H, Lq, Lk): (3, 2) and (1, 1, 2, 3)' attend "${files[@]}" --keep tall.csv
expect 1 'qkv: error: [mask] keep takes zeros and ones, got 57' attend "${files[@]}" --keep q.csv
expect 1 'qkv: error: w.safetensors: --score bilinear needs a tensor "W"' attend "${one_dimension[@]}" --score bilinear --params w.safetensors
expect 1 'qkv: error: [bilinear] W must be (query width, key width): (1, 1) for queries (1, 1, 2, 2) and keys (1, 1, 3, 2)' attend "${files[@]}" --score bilinear --params bilinear.safetensors
expect 1 'qkv: error: q.txt: expected a .npy or .csv file' attend --query q.txt --key k.csv --value v.csv
run attend --query none.npy --key k.csv --value v.csv
expect_match '^1 qkv: error: .*none.npy: ' "$code $err"
run attend "${files[@]}" --plot heat.gif
expect_match '^1 qkv: error: .*heat.gif.*\.svg' "$code $err"

# Numbers at the edge of a float: right, or refused in one line.
printf '1e20,0\n-1e20,2e20\n' >large.csv; printf '1e-25,0\n-1e-25,2e-25\n' >small.csv; printf '1,0\n-1,2\n' >unit.csv
run attend --query unit.csv --key k.csv --value v.csv --score cosine
want=$out
for q in large small; do
  expect 0 '' attend --query $q.csv --key k.csv --value v.csv --score cosine
  expect_out "$want"
done
printf '2.5e38,2.5e38,2.5e38\n0,0,0\n' >bias.csv
run attend "${files[@]}" --bias bias.csv
expect_match '^1 qkv: error: \[mask\] a bias of 2.5[0-9e+]* is too large: scores would overflow a float$' "$code $err"
expect 2 'qkv: error: --scale must fit in a float, got 1e+39' attend "${files[@]}" --scale 1e39
expect 2 'qkv: error: --temperature and its reciprocal must fit in a float, got 1e-45' attend "${files[@]}" --score cosine --temperature 1e-45
run attend "${files[@]}" --scale 3e38
expect_match '^1 qkv: error: the output is not finite, although queries, keys and values are: ' "$code $err"
# A Gaussian so narrow that every score is beyond a float: the nearest keys win, as in regress.
printf '0\n0.4\n7\n' >narrow_q.csv; printf '1\n-1\n3\n' >narrow_k.csv; printf '10\n20\n60\n' >narrow_v.csv
paste -d, narrow_k.csv narrow_v.csv >narrow.csv
for h in 1e-30 1e-38 1e-10; do
  expect 0 '' attend --query narrow_q.csv --key narrow_k.csv --value narrow_v.csv --score gaussian --bandwidth $h --weights narrow.npy
  expect_out $'15\n10\n60'
  run regress --data narrow.csv --bandwidth $h --at 0 --at 0.4 --at 7
  expect_match $'\n0,15\n0.4,10\n7,60$' "$out"
done
