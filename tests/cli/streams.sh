# Standard streams that are closed, full or without a reader: text for standard error is dropped, results never are.
printf 'x,y\n0,1\n1,2\n2,3\n' >d.csv
for a in 0 1 2 3 4 5; do for b in 0 1 2 3 4 5; do printf '%s %s\t%s %s\n' $a $b $b $a; done; done >pairs.tsv
train=(train --data pairs.tsv --tokenizer spaces --min-count 1 --embed 8 --hidden 8 --valid-share 0.2 --epochs)

# check_code WANT GOT WHAT
check_code() { checks=$((checks + 1)); [[ $1 == "$2" ]] || mismatch "$3: exit code $2, expected $1"; }

run "${train[@]}" 3 -o plain
check_code 0 $code plain
"$QKV" "${train[@]}" 3 -o full 2>/dev/full; check_code 0 $? '2>/dev/full'
"$QKV" "${train[@]}" 3 -o bar --log-format bar 2>/dev/full; check_code 0 $? 'a bar on /dev/full'
"$QKV" "${train[@]}" 3 -o closed 2>&-; check_code 0 $? '2>&-'
"$QKV" "${train[@]}" 3 -o all <&- >&- 2>&-; check_code 0 $? 'all three closed'
# A reader that goes away: SIGPIPE does not end the program.
mkfifo pipe
: <pipe & "$QKV" "${train[@]}" 60 -o gone 2>pipe; check_code 0 $? 'a pipe without a reader'
for folder in full bar closed all; do
  checks=$((checks + 1))
  cmp -s plain/model.safetensors $folder/model.safetensors || mismatch "$folder/model.safetensors differs from that of a run with streams"
  [[ ! -s $folder/train.lock ]] || mismatch "$folder/train.lock holds what was meant for a stream: $(cat $folder/train.lock)"
done
[[ -s gone/model.safetensors ]] || mismatch "a pipe without a reader: no model"

# Notes are dropped, the result is printed, and the exit code is that of the command.
run translate --model plain -q <<<'' ; check_code 0 $code translate
printf '1 seven\n' >words.txt
want=$("$QKV" translate --model plain words.txt 2>/dev/null)
for how in '2>/dev/full' '2>&-' '<&- 2>&-'; do
  got=$(eval "\"\$QKV\" translate --model plain words.txt $how"); check_code 0 $? "translate with a note, $how"
  [[ -n $got && $got == "$want" ]] || mismatch "translate $how printed $got"
done
want=$("$QKV" regress --data d.csv --bandwidth rule --at 1 2>/dev/null)
got=$("$QKV" regress --data d.csv --bandwidth rule --at 1 2>/dev/full); check_code 0 $? 'regress with a note'
[[ -n $got && $got == "$want" ]] || mismatch "regress 2>/dev/full printed $got"
# An error keeps its exit code, with or without a reader.
"$QKV" regress --data none.csv 2>/dev/full; check_code 1 $? 'an error on /dev/full'
"$QKV" regress 2>&-; check_code 2 $? 'a wrong command line with standard error closed'

# A result that cannot be written is an error.
err=$("$QKV" regress --data d.csv --bandwidth 1 2>&1 >/dev/full); check_code 1 $? '>/dev/full'
expect_match '^qkv: error: cannot write to standard output: No space left on device$' "$err"
err=$("$QKV" regress --data d.csv --bandwidth 1 2>&1 >&-); check_code 1 $? '>&-'
expect_match '^qkv: error: cannot write to standard output: Bad file descriptor$' "$err"
"$QKV" regress --data d.csv --bandwidth 1 >&- 2>&-; check_code 1 $? '>&- 2>&-'
# A file never gets the number of a stream: with standard output closed, printed text does not end up in the table.
"$QKV" regress --data d.csv --bandwidth 1 --at 1 --json -o table.csv >&- 2>/dev/null; check_code 1 $? '--json -o >&-'
[[ ! -e table.csv || $(cat table.csv) == $'x,prediction\n1,2' ]] || mismatch "table.csv holds $(cat table.csv)"
# Closed standard input cannot be read, and is not an empty file.
err=$("$QKV" translate --model plain 2>&1 <&-); check_code 1 $? 'translate <&-'
expect_match '^qkv: error: cannot read standard input' "$err"
