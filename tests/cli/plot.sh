# qkv plot: every kind of input and output, and what it refuses.
npy eye.npy '<f4' '(2, 2)' '\0\0\x80\x3f\0\0\0\0\0\0\0\0\0\0\x80\x3f'
npy line.npy '<f4' '(3,)' '\0\0\x80\x3f\0\0\0\x40\0\0\x40\x40'
printf 'x,a,b\n0,1,2\n1,3,1\n2,2,5\n' >table.csv
printf '{"kind":"epoch","step":5,"loss":1.5}\n{"kind":"step","step":6,"loss":9}\n{"kind":"epoch","step":10,"loss":0.5}\n' >metrics.jsonl

expect 0 '' plot eye.npy --xlabel Keys --ylabel Queries -o heat.svg
expect_match '<svg.*>Keys<.*>Queries<' "$(cat heat.svg)"
expect 0 '' plot eye.npy -o heat.png
expect_match 'PNG' "$(head -c 8 heat.png | tr -d '\0')"
expect 0 '' plot eye.npy --xtokens go,. --ytokens va,! --cmap reds --range 0,1 --title 注意力 --size 3x3 -o tokens.svg
expect_match '注意力.*go' "$(tr -d '\n' <tokens.svg)"
expect 0 '' plot table.csv -o table.svg
expect_match '>a<.*>b<' "$(tr -d '\n' <table.svg)"
expect 0 '' plot table.csv --x x --y b --kind points --xlim 0,5 --ylim -1,6 -o points.svg
for kind in bars histogram curves; do expect 0 '' plot table.csv --kind "$kind" -o "$kind.svg"; done
expect 0 '' plot table.csv --kind histogram --lang zh -o zh.svg
expect_match '>计数<' "$(cat zh.svg)"
expect 0 '' plot metrics.jsonl --log-y -o loss.svg
expect_match '>step<' "$(tr -d '\n' <loss.svg)"
expect 0 '' plot line.npy
expect_match 'index' "$out"
expect 0 '' --lang zh plot line.npy
expect_match '序号' "$out"
expect 0 '' plot eye.npy
expect_match '@@' "$out"
expect 0 '' plot eye.npy -o heat.txt

expect 1 'qkv: error: heat.bmp: unknown ending ".bmp", expected .svg, .png or .txt' plot eye.npy -o heat.bmp
expect 1 'qkv: error: cannot open nosuch.csv: No such file or directory' plot nosuch.csv
expect 1 'qkv: error: table.csv: there is no column "c"; the columns are "x", "a", "b"' plot table.csv --y c
expect 2 'qkv: error: --size: got "3", expected two numbers like 4x5.5' plot eye.npy --size 3
expect 2 'qkv: error: --range: got "a,1", expected two numbers like 4,5.5' plot eye.npy --range a,1
expect 2 'qkv: error: --range: got "1,2,3", expected two numbers like 4,5.5' plot eye.npy --range 1,2,3
expect 2 'qkv: error: --range: got "1,0", expected the lower number first' plot eye.npy --range 1,0
expect 2 'qkv: error: a heat map takes one file, got 2' plot eye.npy eye.npy
expect 1 'qkv: error: line.npy: a heat map needs an array with 2 to 4 axes, got shape (3,)' plot line.npy --kind heatmap
printf 'no json\n' >bad.jsonl
expect 1 'qkv: error: bad.jsonl: line 1: expected a JSON object with "step" and "loss"' plot bad.jsonl
expect 1 'qkv: error: cannot write gone/heat.svg: No such file or directory' plot eye.npy -o gone/heat.svg

# Columns of a metrics file by name; without --y, its losses.
printf '{"kind":"epoch","epoch":1,"step":5,"loss":1.5,"valid_loss":1.25}\n{"kind":"epoch","epoch":2,"step":10,"loss":0.5,"valid_loss":0.75}\n' >both.jsonl
expect 0 '' plot both.jsonl -o both.svg
expect_match '>valid_loss<' "$(cat both.svg)"
expect 0 '' --lang zh plot both.jsonl -o both_zh.svg
expect_match '>步数<' "$(cat both_zh.svg)"
expect_match '>验证损失<' "$(cat both_zh.svg)"
expect 0 '' plot both.jsonl --x epoch --y valid_loss -o valid.svg
expect_match '>epoch<.*>valid_loss<|>valid_loss<.*>epoch<' "$(tr -d '\n' <valid.svg)"
expect 1 'qkv: error: both.jsonl: line 1: has no number "nosuch"
hint: it has epoch, loss, step, valid_loss; repeat --y for several columns' plot both.jsonl --y nosuch
expect 1 $'qkv: error: maps.npz: contains several arrays; expected .npy, .csv or .jsonl\nhint: qkv info maps.npz lists them' plot maps.npz

# A PNG is refused if there is not enough memory for the libraries that draw it: they would end the program.
if (ulimit -v 200000 && "$QKV" --version >/dev/null 2>&1); then  # not under a sanitizer
  err=$( (ulimit -v 200000; "$QKV" plot eye.npy -o limited.png) 2>&1 ); code=$?
  expect_match '^1 qkv: error: cannot write PNG: it needs up to 256 MB of address space, and the memory limit leaves less' "$code $err"
fi
