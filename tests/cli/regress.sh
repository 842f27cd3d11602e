# qkv regress and the data sets of the notes.
expect 0 '' data waist -o waist.csv
expect 0 '' data measures -o measures.csv
expect 0 '' data waist
expect_out 'waist,weight
51,40
56,43
58,48'

# The worked examples.
expect 0 '' regress --data waist.csv --x waist --y weight --kernel gaussian --bandwidth 1 --at 57
expect_match $'^waist,prediction\n57,45\.49999993[0-9]*$' "$out"
expect 0 '' regress --data measures.csv --x waist --x chest --y weight --y height --at 57,83 --at 55,76
expect_match $'^waist,chest,prediction_weight,prediction_height\n57,83,45\.5,160\.5\n55,76,45\.498479[0-9]*,160\.498479[0-9]*$' "$out"
expect 0 '' regress --data waist.csv --estimator average --at -5,1000
expect_match $'^waist,prediction\n-5,43\.6666666666[0-9]*\n1000,43\.6666666666[0-9]*$' "$out"
expect 0 '' regress --data waist.csv --estimator local-linear --kernel constant --at 57 --effective-keys
expect_match $'^waist,prediction,effective_keys\n57,45\.743589743[0-9]*,[23]' "$out"

# Bandwidths chosen automatically; the band; JSON.
expect 0 '' --seed 1 data nadaraya-watson -o points.csv
expect 0 '' --quiet regress --data points.csv --bandwidth cv --band --grid 5
expect_match $'^x,prediction,low,high\n' "$out"
[[ $(wc -l <<<"$out") == 6 ]] || mismatch "a grid of 5 gives 6 lines"
run regress --data points.csv --bandwidth learn --json --grid 3
expect_match '^qkv: note: bandwidth 0\.[0-9]+, chosen by learn$' "$err"
expect_match '"losses": \[' "$out"
expect_match '"predictions": \[' "$out"
run regress --data points.csv --bandwidth rule --at 1
expect_match '^qkv: note: bandwidth 0\.[0-9]+, chosen by rule$' "$err"

# Written files are read again; .npy is read like .csv.
expect 0 '' regress --data points.csv --bandwidth 0.3 -o fit.npy --weights w.npy --plot fit.svg --weights-plot heat.svg
expect 0 '' info fit.npy w.npy
expect_match 'fit.npy: npy, 1 array, 200 elements' "$out"
expect_match 'w.npy: npy, 1 array, 5,000 elements' "$out"
expect_match '<svg' "$(head -c 400 fit.svg) "
expect 0 '' regress --data points.csv --bandwidth 0.3 --band --plot band.svg -o band.csv
expect_match '>95 % band<' "$(cat band.svg)"
expect 0 '' regress --data points.csv --bandwidth 0.3 --band --level 0.9 --plot band.svg -o band.csv
expect_match '>90 % band<' "$(cat band.svg)"
expect_match 'Sorted training inputs' "$(cat heat.svg)"
expect 0 '' regress --data points.csv --bandwidth 0.3 -o fit.csv
expect 1 'qkv: error: fit.csv: has 2 columns, x has 1, and their names differ' regress --data waist.csv --at fit.csv
expect 0 '' regress --data fit.npy --x 1 --y 2 --bandwidth 0.1 --at fit.npy -o again.csv
[[ $(wc -l <again.csv) == 101 ]] || mismatch "points from a file"
printf '\xef\xbb\xbf腰围;体重\r\n51;40\r\n56;43\r\n58;48\r\n' >zh.csv
expect 0 '' regress --data zh.csv --x 腰围 --y 体重 --at 57
expect_match $'^腰围,prediction\n57,45\.49999993' "$out"

# Same bits at any number of threads.
expect 0 '' data nadaraya-watson --points 3000 -o many.csv
run --threads 1 regress --data many.csv --bandwidth cv --grid 1000 --band
one=$out
run --threads 3 regress --data many.csv --bandwidth cv --grid 1000 --band
[[ $one == "$out" ]] || mismatch "1 and 3 threads differ"

# No neighbour: an empty field, and a note.
expect 0 'qkv: note: 1 of 2 points has no neighbour within the bandwidth, so no prediction' \
  regress --data waist.csv --kernel boxcar --at 51,100
expect_out 'waist,prediction
51,40
100,'
run regress --data waist.csv --kernel boxcar --at 100 --json
expect_match '"prediction": null' "$out"

# Bad input.
expect 1 'qkv: error: waist.csv: there is no column "waste"; the columns are "waist", "weight"
hint: did you mean "waist"?' regress --data waist.csv --x waste --y weight
printf 'x,y\n1,2\n3,abc\n' >text.csv
expect 1 'qkv: error: text.csv: line 3, column "y": expected a number, found "abc"' regress --data text.csv
printf 'x,y\n1,2\nNaN,4\n3,5\n' >nan.csv
expect 1 'qkv: error: nan.csv: line 3, column "x": expected a number, found "NaN"
hint: --drop-missing drops rows with missing numbers' regress --data nan.csv
expect 0 'qkv: note: 1 row with missing numbers was dropped' regress --data nan.csv --drop-missing --at 1
printf 'x,y\n2,7\n' >one.csv
expect 0 '' regress --data one.csv --at 9
expect_out 'x,prediction
9,7'
expect 1 'qkv: error: [bandwidth] a rule needs at least 2 rows, got 1' regress --data one.csv --bandwidth cv
printf '2,6\n2,8\n' >equal.csv
expect 0 '' regress --data equal.csv --at 3
expect_out 'x,prediction
3,7'
expect 1 'qkv: error: [bandwidth] all 2 values of x column 1 are 2: a width cannot be derived from them, give one' \
  regress --data equal.csv --bandwidth rule
printf 'x,y\n' >none.csv
expect 1 'qkv: error: none.csv: has no rows' regress --data none.csv
: >empty.csv
expect 1 'qkv: error: empty.csv: is empty' regress --data empty.csv
expect 1 'qkv: error: cannot open no.csv: No such file or directory' regress --data no.csv
expect 2 'qkv: error: --bandwidth: must be positive and finite, got 0' regress --data waist.csv --bandwidth 0
expect 2 'qkv: error: --bandwidth: must be positive and finite, got -2' regress --data waist.csv --bandwidth -2
expect 2 'qkv: error: --bandwidth: expected a number, rule, cv or learn, got "wide"' regress --data waist.csv --bandwidth wide
expect 2 'qkv: error: --bandwidth: 2 numbers for 1 columns of x' regress --data waist.csv --bandwidth 1,2
expect 2 'qkv: error: --at: a point needs 2 numbers, got 1 in "57"' regress --data measures.csv --x waist --x chest --y weight --at 57
expect 2 'qkv: error: --at: expected numbers or a .csv or .npy file, got "here"' regress --data waist.csv --at here
expect 2 'qkv: error: --plot: expected a path that ends in .svg or .png or .txt, got "fit.bmp"' regress --data waist.csv --plot fit.bmp
expect 2 'qkv: error: --output: expected a path that ends in .csv or .npy, got "fit.xls"' regress --data waist.csv -o fit.xls
expect 2 'qkv: error: --bandwidth learn is for the gaussian kernel and the local-constant estimator, got boxcar and local-constant' \
  regress --data waist.csv --kernel boxcar --bandwidth learn
expect 2 'qkv: error: the option --data FILE is missing' regress --x a
npy cube.npy '<f4' '(1, 1, 1)' '\0\0\0\0'
expect 1 'qkv: error: cube.npy: expected shape (rows, columns), got (1, 1, 1)' regress --data cube.npy
npy inf.npy '<f4' '(1, 2)' '\0\0\x80\x7f\0\0\0\0'
expect 1 'qkv: error: inf.npy: row 1, column "1": expected a number, found inf' regress --data inf.npy --at 1

# An option before an argument takes one value.
expect 0 '' data nadaraya-watson --points 1 --noise 0
expect_match $'^x,y\n[0-9.]+,[0-9.]+$' "$out"

# Input files are never overwritten.
printf 'x,y\n0,1\n1,2\n2,3\n' >own.csv; cp own.csv kept.csv
expect 2 'qkv: error: own.csv: is an input of this command and cannot also be its output' regress --data own.csv --at 1 -o own.csv
cmp -s own.csv kept.csv || mismatch "regress changed its input"
expect 2 'qkv: error: --output and --weights cannot be the same file' regress --data own.csv --at 1 -o w.npy --weights w.npy

# The column keeps its name, in JSON too; an array's columns have none.
run regress --data waist.csv --x waist --y weight --at 57 --json
expect_match '"waist": 57.0,' "$out"
[[ $out != *'"x":'* ]] || mismatch "another name: $out"
run regress --data fit.npy --x 1 --y 2 --bandwidth 0.1 --at 1
expect_match '^x,prediction' "$out"

# One huge y whose weight is 0.
for y in 1e10 1e20 9.969209968386869e36; do
  printf 'x,y\n0,1\n1,2\n2,3\n100,%s\n' $y >huge.csv
  for kernel in gaussian boxcar epanechnikov triangular; do
    for estimator in local-constant local-linear; do
      expect 0 '' regress --data huge.csv --kernel $kernel --estimator $estimator --bandwidth 1.5 --at 1
      expect_out $'x,prediction\n1,2'
    done
  done
done

# An x from which no bandwidth can be derived: the error names the column.
printf 'a,b,y\n1,1e-310,1\n2,2e-310,2\n3,3e-310,3\n' >tiny.csv
for how in rule cv; do
  run regress --data tiny.csv --bandwidth $how
  expect_match '^1 qkv: error: \[bandwidth\] x column 2 runs from 1e-310 to 3e-310: ' "$code $err"
done
