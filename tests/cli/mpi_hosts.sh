# Ranks on several hosts: network namespaces of this machine with a link of their own, its bandwidth set by tc, started through
# Open MPI's plm_rsh_agent. Everything that is made here is removed again. Skipped where namespaces are not allowed.
source "$(dirname "$test_file")/mpi.bash"
tag=qkv$$
unmake() {
  [[ -z ${relay:-} ]] || kill "$relay" 2>/dev/null
  ip netns del ${tag}a 2>/dev/null
  ip netns del ${tag}b 2>/dev/null
  chmod -R u+w "$folder"; rm -rf "$folder"
}
skip() { echo "skipped: $1"; exit 77; }
(( EUID == 0 )) || skip "network namespaces need root"
command -v ip >/dev/null && command -v tc >/dev/null && command -v unshare >/dev/null || skip "ip, tc or unshare is not installed"
ip netns add ${tag}a 2>/dev/null || skip "network namespaces are not allowed here"
trap unmake EXIT
ip netns add ${tag}b && ip link add wire netns ${tag}a type veth peer name wire netns ${tag}b || skip "there is no veth"
ip -n ${tag}a addr add 10.77.5.1/24 dev wire && ip -n ${tag}b addr add 10.77.5.2/24 dev wire
for n in a b; do ip -n $tag$n link set lo up; ip -n $tag$n link set wire up; done

# The agent enters the namespace of a host: agent HOST COMMAND...
cat >agent <<TEXT
#!/bin/sh
case \$1 in *.2) name=b ;; *) name=a ;; esac
shift
exec ip netns exec $tag\$name unshare --uts sh -c 'hostname qkv-\$0; eval "\$1"' \$name "\$*"
TEXT
chmod +x agent
net=10.77.5
# hosts N ARGS...: N ranks on each of the two hosts.
hosts() {
  local per_host=$1
  shift
  ip netns exec ${tag}a unshare --uts sh -c 'hostname qkv-a; exec "$@"' sh \
    timeout -k 5 150 mpirun -H $net.1:$per_host,$net.2:$per_host -n $((2 * per_host)) --mca plm_rsh_agent "$PWD/agent" --mca btl tcp,vader,self \
    --mca btl_tcp_if_include $net.0/24 --mca oob_tcp_if_include $net.0/24 "$QKV" "$@" >"$folder/out" 2>"$folder/err" </dev/null
  code=$?
  out=$(cat "$folder/out") err=$(cat "$folder/err")
}
# speed GBIT: sets the speed for both directions.
speed() {
  local n
  for n in a b; do tc -n $tag$n qdisc replace dev wire root tbf rate "$1gbit" burst "$1mb" latency 20ms || skip "tc has no tbf"; done
}

pairs >pairs.tsv
train=(train --data pairs.tsv --tokenizer spaces --min-count 1 --embed 24 --hidden 24 --rate 0.01 --batch-rows 32 --seed 3 --shards 4
  --valid-share 0.1 --quiet --threads 1)
run "${train[@]}" --epochs 3 -o alone
for gigabits in 1 10; do
  speed $gigabits
  hosts 1 "${train[@]}" --epochs 3 -o net$gigabits
  [[ $code == 0 ]] || mismatch "$gigabits Gbit/s: exit code $code: $err"
  same_bits alone net$gigabits
  (( gigabits == 1 )) || [[ ${ALL_RANKS:-} ]] || continue  # it takes some seconds
  hosts 1 bench --distributed --json
  rate=$(grep -o '"bandwidth":[0-9.e+]*' <<<"$out" | cut -d : -f 2)
  expect_match 'qkv-a.*qkv-b' "$out"
  printf 'link of %s Gbit/s: measured %s Gbit/s, %s\n' $gigabits "$(awk -v r="$rate" 'BEGIN { printf "%.2f", r * 8e-9 }')" \
    "$(grep -o '"ping_seconds":[0-9.e-]*' <<<"$out")"
  checks=$((checks + 1))
  awk -v r="$rate" -v g=$gigabits 'BEGIN { exit !(r * 8e-9 < 1.1 * g) }' || mismatch "faster than the link: $rate bytes per second"
done
hosts 2 "${train[@]}" --epochs 3 -o four
[[ $code == 0 ]] || mismatch "two ranks on each host: exit code $code: $err"
same_bits alone four

# A delay: by netem where the kernel has it, else by a relay.
if tc -n ${tag}a qdisc replace dev wire root netem delay 2ms 2>/dev/null; then
  tc -n ${tag}b qdisc replace dev wire root netem delay 2ms
  by=netem
elif command -v python3 >/dev/null && [[ -c /dev/net/tun ]]; then
  python3 "$(dirname "$test_file")/../mpi/delay.py" ${tag}a 10.77.6.1 ${tag}b 10.77.6.2 2 120 >relay.txt & relay=$!
  for _ in {1..50}; do grep -qs ready relay.txt && break; sleep 0.1; done
  net=10.77.6 by="a relay of our own (this kernel has no netem)"
fi
if [[ ${by:-} ]]; then
  echo "delay of 2 ms each way by $by"
  hosts 1 "${train[@]}" --epochs 1 -o delayed
  [[ $code == 0 ]] || mismatch "with a delay: exit code $code: $err"
  run "${train[@]}" --epochs 1 -o once
  same_bits once delayed
  net=10.77.5
else
  echo "no delay: neither netem nor TUN devices here"
fi

# The link is cut in the middle of a training: the job ends in time, names the host, and one process resumes it.
speed 10
long=("${train[@]}" --epochs 200 --checkpoint-seconds 0.05)
hosts 1 "${long[@]}" --rank-timeout 4 -o cut & job=$!
for _ in {1..300}; do [[ -e cut/checkpoints/last.safetensors ]] && break; sleep 0.1; done
ip -n ${tag}a link set wire down
SECONDS=0
wait $job
took=$SECONDS err=$(cat "$folder/err")
checks=$((checks + 1))
[[ $took -le 10 && $(ours) =~ ^"qkv: error: rank 1 on qkv-b has not answered for 4 s, at step "[0-9]+"; the job ends, and the same command resumes it"$ ]] ||
  mismatch "after $took s: $err"
echo "the link was cut: the job ended after $took s"
ip -n ${tag}a link set wire up
run "${long[@]}" -o cut
run "${long[@]}" -o uncut
same_bits cut uncut
