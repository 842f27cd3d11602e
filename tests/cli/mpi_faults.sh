# Distributed jobs that cannot start, and ranks that die, hang or cannot write: one line of ours, and a run that resumes.
source "$(dirname "$test_file")/mpi.bash"
pairs >pairs.tsv
host=$(hostname)
bare=(train --tokenizer spaces --min-count 1 --embed 16 --hidden 16 --seed 5 --shards 4 --quiet)
small=("${bare[@]}" --data pairs.tsv --batch-rows 32)

# refused CODE LINE: the exit code, and exactly one line of ours.
refused() {
  checks=$((checks + 1))
  [[ $code == "$1" && $(ours) == "$2" ]] || mismatch "exit code $code and
$(ours)
expected $1 and
$2
all of it: $err"
}

expect 2 'qkv: error: --distributed mpi: this process was not started by mpirun or srun
hint: mpirun -n 4 qkv train ... starts four; docs/distributed.md explains it' "${small[@]}" --distributed mpi -o x
expect 2 'qkv: error: --rank-timeout: got "0", expected a number from 1 to 1e+06' "${small[@]}" --rank-timeout 0 -o x

# More ranks than rows of a step.
mpi 4 "${bare[@]}" --data pairs.tsv --batch-rows 3 -o x
refused 1 'qkv: error: 4 ranks, but a step has only 3 rows: training.batch_rows 3 times training.accumulate 1
hint: mpirun -n 3 starts as many as can work'
# What is wrong with the command line is said once.
mpi 3 "${small[@]}" --rat 3 -o x
refused 2 'qkv: error: unknown option "--rat"
hint: did you mean "--rate"?'
mpi 3 train -c missing.yaml -o x
refused 1 'qkv: error: cannot open missing.yaml: No such file or directory'
# A file that is nowhere is reported once; one that only rank 0 has, by the rank that misses it.
mpi 3 "${bare[@]}" --data missing.tsv -o x
refused 1 'qkv: error: cannot open missing.tsv: No such file or directory'
mkdir a b && cp pairs.tsv a/
mpirun -n 1 -wdir "$PWD/a" "$QKV" "${small[@]}" -o x : -n 1 -wdir "$PWD/b" "$QKV" "${small[@]}" -o x >/dev/null 2>"$folder/err" </dev/null
code=$? err=$(cat "$folder/err")
refused 1 "qkv: error: rank 1 on $host: cannot open pairs.tsv: No such file or directory"
# Other data, another configuration, other kernels, another program: refused by name.
head -n 200 pairs.tsv >b/pairs.tsv
mpirun -n 1 -wdir "$PWD/a" "$QKV" "${small[@]}" -o y : -n 1 -wdir "$PWD/b" "$QKV" "${small[@]}" -o y >/dev/null 2>"$folder/err" </dev/null
code=$? err=$(cat "$folder/err")
checks=$((checks + 1))
[[ $code == 1 && $(ours) =~ ^"qkv: error: rank 1 on $host has other training data than rank 0 (fingerprint "-?[0-9]+", not "-?[0-9]+"): the files must be the same everywhere"$ ]] ||
  mismatch "other data: $err"
mpirun -n 1 "$QKV" "${small[@]}" -o x : -n 1 "$QKV" "${small[@]}" --rate 0.5 -o x >/dev/null 2>"$folder/err" </dev/null
code=$? err=$(cat "$folder/err")
refused 1 "qkv: error: rank 1 on $host was started with the setting \"rate: 0.5\", but rank 0 with \"rate: 0.001\": all must have the same configuration"
if "$QKV" info | grep -q AVX2; then
  mpirun -n 1 "$QKV" "${small[@]}" -o x : -n 1 "$QKV" "${small[@]}" --kernel-target SSSE3 -o x >/dev/null 2>"$folder/err" </dev/null
  code=$? err=$(cat "$folder/err")
  refused 1 "qkv: error: rank 1 on $host uses the kernels SSSE3, but rank 0 uses AVX2: their results would differ; --kernel-target NAME selects one that all CPUs have"
fi
mkdir -p other/bin && cp "$QKV" other/bin/qkv && echo >>other/bin/qkv && ln -s "$(realpath "$plugin/lib")" other/lib
mpirun -n 1 "$QKV" "${small[@]}" -o x : -n 1 other/bin/qkv "${small[@]}" -o x >/dev/null 2>"$folder/err" </dev/null
code=$? err=$(cat "$folder/err")
checks=$((checks + 1))
[[ $code == 1 && $(ours) =~ ^"qkv: error: rank 1 on $host runs qkv "[0-9.]+" (build "[0-9a-f]+"), but rank 0 runs "[0-9.]+" (build "[0-9a-f]+"): all must run the same program"$ ]] ||
  mismatch "another program: $err"
checks=$((checks + 1))
[[ ! -e x ]] || mismatch "a refused job left the folder x"

# A folder that only rank 0 sees is enough.
cp pairs.tsv b/
mpirun -n 1 -wdir "$PWD/a" "$QKV" "${small[@]}" --epochs 2 -o z : -n 1 -wdir "$PWD/b" "$QKV" "${small[@]}" --epochs 2 -o z >/dev/null 2>"$folder/err" </dev/null
code=$?
checks=$((checks + 1))
[[ $code == 0 && -s a/z/model.safetensors && ! -e b/z ]] || mismatch "a folder of rank 0: $(cat "$folder/err")"

# A folder in which another job trains.
long=("${small[@]}" --epochs 100000 --checkpoint-seconds 0.05)
mpirun -n 2 "$QKV" "${long[@]}" -o busy >/dev/null 2>&1 </dev/null & job=$!
for _ in {1..200}; do [[ -e busy/checkpoints/last.safetensors ]] && break; sleep 0.1; done
mpi 2 "${long[@]}" -o busy
checks=$((checks + 1))
[[ $code == 1 && $(ours) =~ ^'qkv: error: busy: another process is training in this folder (process '[0-9]+')'$ ]] ||
  mismatch "a busy folder: exit code $code: $err"
# mpirun is asked to stop: all ranks stop after the same step, and say so.
SECONDS=0
kill -TERM $job; wait $job
(( SECONDS <= 10 )) || mismatch "mpirun took $SECONDS s to end"
# ranks_of FOLDER: the processes of a job, by the number of their rank.
ranks_of() {
  local pid
  for pid in $(pgrep -f -- "-o $1\$"); do
    tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null | sed -n "s/^OMPI_COMM_WORLD_RANK=\(.*\)/\1 $pid/p"
  done | sort -n
}

# A rank that dies: rank 0 says which, wherever it was. Rank 0 dies: rank 1 says so.
for victim in 2 0; do
  mpirun -n 3 "$QKV" "${long[@]}" -o died$victim >/dev/null 2>"$folder/err" </dev/null & job=$!
  for _ in {1..200}; do [[ -e died$victim/checkpoints/last.safetensors ]] && break; sleep 0.1; done
  pid=$(ranks_of died$victim | sed -n "s/^$victim //p")
  kill -KILL "$pid"
  wait $job; code=$? err=$(cat "$folder/err")
  checks=$((checks + 1))
  [[ $code != 0 && $(ours) =~ ^"qkv: error: rank $victim on $host died, at step "[0-9]+"; the job ends, and the same command resumes it"$ ]] ||
    mismatch "rank $victim killed: exit code $code: $err"
done
# A rank that hangs.
mpirun -n 3 "$QKV" "${long[@]}" --rank-timeout 2 -o hangs >/dev/null 2>"$folder/err" </dev/null & job=$!
for _ in {1..200}; do [[ -e hangs/checkpoints/last.safetensors ]] && break; sleep 0.1; done
SECONDS=0
kill -STOP "$(ranks_of hangs | sed -n 's/^1 //p')"
wait $job; code=$? err=$(cat "$folder/err")
checks=$((checks + 1))
[[ $code != 0 && $SECONDS -le 6 && $(ours) =~ ^"qkv: error: rank 1 on $host has not answered for 2 s, at step "[0-9]+"; the job ends, and the same command resumes it"$ ]] ||
  mismatch "a rank that hangs: exit code $code after $SECONDS s: $err"

# Rank 0 cannot write: all stop, and the last checkpoint is whole.
mpi 2 "${small[@]}" --epochs 3 -o full
before=$(sha256sum <full/checkpoints/last.safetensors)
# Only the program is limited: MPI's shared memory has files as well.
mpirun -n 2 --mca btl self,tcp bash -c 'ulimit -f 8; exec "$@"' sh "$QKV" "${small[@]}" --epochs 20 -o full >/dev/null 2>"$folder/err" </dev/null
code=$? err=$(cat "$folder/err")
checks=$((checks + 1))
[[ $code == 1 && $(ours) == 'qkv: error: cannot write full/'*': File too large' ]] || mismatch "a full disk: exit code $code: $err"
[[ $(sha256sum <full/checkpoints/last.safetensors) == "$before" ]] || mismatch "the checkpoint was damaged"
run "${small[@]}" --epochs 20 -o full
[[ $code == 0 ]] || mismatch "the run does not resume: $err"
