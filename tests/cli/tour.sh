# qkv tour and qkv bench.
expect 0 '' tour --out report
expect_match '^1 of 10  0 .*8 of 10  10\.7  The Transformer.*9 of 10  11\.8  The vision Transformer.*10 of 10  11\.9  Language models · [0-9]+ claims, 0 failed.*report: report/index.html \([0-9:]+\)$' "$out"
page=$(cat report/index.html)
expect_match '^<!doctype html>.*<math.*<svg.*</html>$' "$page"
[[ $page != *http://* || $page == *http://www.w3.org/* ]] || mismatch "the report points outside"
[[ $page != *'class="claim bad"'* ]] || mismatch "the report shows a failed claim"
iconv -f utf-8 -t utf-8 report/index.html >copy.html || mismatch "the report is not UTF-8"
expect 0 '' --lang zh tour 10.2 -o zh-regression --quiet
iconv -f utf-8 -t utf-8 zh-regression/index.html >copy.html || mismatch "the Chinese report is not UTF-8"
expect 0 '' --lang zh tour 10.1 scoring -o zh --quiet
expect_out ''
expect_match 'lang="zh-CN".*注意力一览.*>键<.*>查询<' "$(tr -d '\n' <zh/index.html)"
[[ $(cat zh/index.html) != *'>Queries<'* ]] || mismatch "an English label in the Chinese report"
[[ $(tr -d '\n' <zh/index.html) != *Transformer\ 模型* ]] || mismatch "a tour of two labs has more"
expect 2 'qkv: error: there is no lab "scorings"
hint: did you mean "scoring"?' tour scorings -o none
[[ ! -e none ]] || mismatch "an unknown lab left a folder"
expect 2 $'qkv: error: --data: none of these labs takes data\nhint: labs 10.4 and 10.7 do' tour 10.1 10.2 --data fra.txt -o none
expect 1 'qkv: error: cannot open nosuch.txt: No such file or directory' tour --data nosuch.txt -o none
touch file
expect 1 'qkv: error: cannot create the folder file/report: Not a directory' tour -o file/report

expect 0 '' bench --filter 'Recorded OP'
expect_match '^recorded op, 8 elements, forward \+ backward +[0-9.]+ (ns|us)$' "$out"
expect 0 '' --lang zh bench --filter 'recorded op'
expect_match '^记录的运算，8 个元素，前向 \+ 反向 +[0-9.]+ (ns|us)$' "$out"
expect 0 '' bench --filter 'recorded op' --json
expect_match '"unit": ""' "$out"
expect 0 '' bench --filter 'n 512, 8 heads of 64, causal'
expect_match '^attention forward, n 512, 8 heads of 64, causal +[0-9.]+ (us|ms) +[0-9.]+ GFLOP/s$' "$out"
expect 2 'qkv: error: --filter: no line of the table contains "nosuch"
hint: qkv bench without --filter shows all lines' bench --filter nosuch
