# qkv tour and qkv bench.
expect 0 '' tour --out report
expect_match 'claims, 0 failed.*report: report/index.html' "$out"
page=$(cat report/index.html)
expect_match '^<!doctype html>.*<math.*<svg.*</html>$' "$page"
[[ $page != *http://* || $page == *http://www.w3.org/* ]] || mismatch "the report points outside"
[[ $page != *'class="claim bad"'* ]] || mismatch "the report shows a failed claim"
expect 0 '' --lang zh tour -o zh --quiet
expect_out ''
expect_match 'lang="zh-CN".*注意力一览' "$(tr -d '\n' <zh/index.html)"
touch file
expect 1 'qkv: error: cannot make the folder file/report: Not a directory' tour -o file/report

expect 0 '' bench --filter 'recorded op'
expect_match '^recorded op, 8 elements, forward \+ backward +[0-9.]+ (ns|us)$' "$out"
expect 0 '' bench --filter 'recorded op' --json
expect_match '"unit": ""' "$out"
expect 2 'qkv: error: --filter: no line of the table holds "nosuch"
hint: qkv bench without it shows all of them' bench --filter nosuch
