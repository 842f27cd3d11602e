# qkv align: the error rate of a file of alignments, counted from 0 or 1, and what it refuses.
printf '0-0 1-1 2-2 3-3 4-4\n\n0-1\n' >hyp.align
printf '0-0 1-1 2-2 5-5 3p3 6?6\n\n0-0\n' >gold.align
printf '1-1 2-2 3-3 6-6 4p4 7?7\n\n1-1\n' >gold1.align
note0='an index is 0, so words are counted from 0'
expect 0 '' align --alignment hyp.align --gold gold.align --base 0
expect_out 'AER 36.4 %  precision 66.7 %  recall 60.0 %  F 63.2 %  (6 links, gold 5 sure and 2 possible, 3 lines)'
scores=$out
expect 0 '' align --alignment hyp.align --gold gold1.align --base 0 --gold-base 1
expect_out "$scores"
expect 0 "qkv: note: hyp.align: $note0; --base 0 says so
qkv: note: gold1.align: no index is 0, so words are taken to be counted from 1; --gold-base decides" align --alignment hyp.align --gold gold1.align
expect_out "$scores"
expect 0 'qkv: note: hyp.align: 有编号为 0，故从 0 开始计数；可用 --base 0 指明' align --alignment hyp.align --gold gold1.align --gold-base 1 --lang zh
expect 0 '' align --quiet --alignment hyp.align --gold gold.align --json
expect_match '^\{"aer":0\.3636363636[0-9]*,"precision":0\.6666[0-9]*,"recall":0\.6,"f":0\.63157894[0-9]*,"links":6,"sure":5,"possible":2,"in_sure":3,"in_sure_or_possible":4,"lines":3\}$' "$out"
printf '\n\n\n' >none.align
expect 0 '' align --alignment none.align --gold none.align --base 0
expect_out 'AER undefined  precision undefined  recall undefined  F undefined  (0 links, gold 0 sure and 0 possible, 3 lines)'
expect_match '^AER 36\.4 %' "$("$QKV" align --alignment - --gold gold.align --base 0 <hyp.align)"

# Sentences bound the links.
printf 'a b c d e f g\n\na\n' >source.txt
printf 'A B C D E F G\n\nA B\n' >target.txt
expect 0 '' align --alignment hyp.align --gold gold.align --base 0 --source source.txt --target target.txt
expect 1 'qkv: error: hyp.align: line 3: the link "0-1" (counted from 0) is outside of 1 source and 1 target words' align --alignment hyp.align --gold gold.align --base 0 --source source.txt --target source.txt

# Refusals.
expect 2 'qkv: error: give --alignment FILE to score one, or --model DIR to make one
hint: qkv align --help shows an example' align --gold gold.align
expect 2 'qkv: error: --gold FILE is missing
hint: qkv align --help shows an example' align --alignment hyp.align
expect 2 'qkv: error: --source and --target go together' align --alignment hyp.align --gold gold.align --source source.txt
expect 2 'qkv: error: --base: got "2", expected a whole number from 0 to 1' align --alignment hyp.align --gold gold.align --base 2
expect 1 'qkv: error: hyp.align: line 1: the link "0-0" has an index 0 in a file that counts from 1' align --alignment hyp.align --gold gold.align --base 1
head -n 2 gold.align >short.align
expect 1 'qkv: error: hyp.align has 3 lines and short.align 2, expected as many' align --alignment hyp.align --gold short.align --base 0
printf '0-0\n0-0 1:2\n' >bad.align
expect 1 'qkv: error: bad.align: line 2: expected a link like 1-2, 1p2 or 1?2, got "1:2"' align --alignment bad.align --gold gold.align
: >empty.align
expect 1 'qkv: error: empty.align: is empty, expected text' align --alignment hyp.align --gold empty.align --base 0
