# qkv tour and qkv bench.
expect 0 '' tour --out report
expect_match '^1 of 11  10\.1 .*7 of 11  10\.7  The Transformer.*9 of 11  11\.8  The vision Transformer.*11 of 11  0 .* claims?, 0 failed.*report: report/index.html \([0-9:]+\)$' "$out"
page=$(cat report/index.html)
expect_match '^<!doctype html>.*<math.*<svg.*</html>$' "$page"
[[ $page != *src=\"* && $page != *@import* && $page != *'url('http* && $page != *'<link rel="stylesheet"'* ]] ||
  mismatch "the report loads something"
[[ $page != *'class="claim bad"'* && $page != *'class="failed"'* ]] || mismatch "the report shows a failure"

# Every exercise of both editions has its anchor, its question before its answer, and evidence after it.
tr -d '\n' <report/index.html | sed 's/<h3 /\n<h3 /g' >steps.txt
while read -r number words; do
  step=$(grep -m 1 -F "id=\"exercise-$number\"" steps.txt) || { mismatch "exercise $number ($words) has no anchor"; continue; }
  [[ $step == *'class="question"'*'class="answer"'*'class="short"'*'<'* ]] ||
    mismatch "exercise $number ($words) lacks its question or its answer"
  [[ $step != *'quick tour leaves'* ]] || mismatch "exercise $number ($words) has no evidence in the full tour"
done <"$(dirname "$test_file")/exercises.txt"
[[ $(wc -l <"$(dirname "$test_file")/exercises.txt") == 61 ]] || mismatch "the list of exercises lost some"

# No link of the page leads nowhere, and no id is there twice.
grep -o 'id="[^"]*"' report/index.html | sed 's/id="\(.*\)"/\1/' | sort >ids.txt
[[ -z $(uniq -d ids.txt) ]] || mismatch "ids that are there twice: $(uniq -d ids.txt | head -n 5)"
lost=$(grep -o 'href="#[^"]*"' report/index.html | sed 's/href="#\(.*\)"/\1/' | sort -u | comm -23 - <(sort -u ids.txt))
[[ -z $lost ]] || mismatch "links to nowhere: $lost"
for part in cues-diagram pooling-diagram scoring-diagram seq2seq-diagram multi-head-diagram connections-diagram \
  transformer-diagram vision-diagram pretraining-diagram notes glossary bibliography exercises cues-in-short; do
  grep -q "id=\"$part\"" report/index.html || mismatch "the report has no $part"
done
for note in 000 001 002 003 004; do grep -q "id=\"note-$note\"" report/index.html || mismatch "note $note is missing"; done
# The commands of the notes run in the folder that their page describes; those that train are tried elsewhere.
"$QKV" data attention -o notes >folder.out
(
  cd notes
  "$QKV" data nadaraya-watson -o nw.csv
  "$QKV" data waist -o waist.csv
  "$QKV" attend --query q.npy --key k.npy --value v.npy --weights w.npy >output
)
commands=$(sed -n '/id="notes"/,/id="glossary"/p' report/index.html | grep -o '<code>qkv [^<]*</code>' | sed 's/<[^>]*>//g' | sort -u)
[[ $(wc -l <<<"$commands") -ge 40 ]] || mismatch "the notes name $(wc -l <<<"$commands") commands"
while read -r _ command; do
  [[ $command == lab* || $command == tour || $command == prune* ]] && continue
  read -ra words <<<"$command"
  (cd notes && "$QKV" "${words[@]}" >output 2>&1) || mismatch "qkv $command: $(cat notes/output)"
done <<<"$commands"
[[ $page == *'data-language="zh"'*'data-language="en"'* || $page == *'data-language="en"'*'data-language="zh"'* ]] ||
  mismatch "the report has no switch of languages"

iconv -f utf-8 -t utf-8 report/index.html >copy.html || mismatch "the report is not UTF-8"
expect 0 '' --lang zh tour 10.2 -o zh-regression --quiet
iconv -f utf-8 -t utf-8 zh-regression/index.html >copy.html || mismatch "the Chinese report is not UTF-8"
expect 0 '' --lang zh tour 10.1 scoring -o zh --quiet
expect_out ''
expect_match 'lang="zh-CN".*注意力一览.*>键<.*>查询<' "$(tr -d '\n' <zh/index.html)"
expect_match 'data-lang="zh".*>Queries<' "$(tr -d '\n' <zh/index.html)"  # both languages are inside
[[ $(tr -d '\n' <zh/index.html) != *Transformer\ 模型* ]] || mismatch "a tour of two labs has more"
# A quick tour leaves out what trains for long, and says so; the question and the answer stay.
expect 0 '' tour vision-transformer --quick -o quick --quiet
expect_match 'What the quick tour left out.*qkv lab vision-transformer' "$(tr -d '\n' <quick/index.html)"
expect_match 'id="exercise-11.8.2".*class="question".*quick tour leaves' "$(tr -d '\n' <quick/index.html)"
# A lab that ends with an error is shown as failed, the others still run, and the exit code says so.
printf 'go .\tva !\nrun .\tcours !\n' >two.tsv
run tour bahdanau cues --data two.tsv -o failing --quick
[[ $code == 1 ]] || mismatch "a tour with a lab that failed: exit code $code"
expect_match 'class="failed".*id="cues"' "$(tr -d '\n' <failing/index.html)"
expect_match 'lab bahdanau failed: two.tsv: has 2 sentence pairs; the lab needs at least 40' "$err"
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
