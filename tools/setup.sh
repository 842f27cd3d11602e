# Sourced by ./qkv and ./test: installs missing packages, configures and builds. The caller has set `root`.
# All messages go to stderr, so that the program's own output stays clean.

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }
die() { say "error: $*"; exit 1; }

# packages GROUP...: the names in those groups.
packages() {
  local group name
  while read -r group name; do
    [[ " $* " == *" $group "* ]] && printf '%s\n' "$name"
  done < "$root/tools/packages.txt"
  return 0
}

# as_root COMMAND...: runs it as root, through sudo where needed; output goes to the set-up log.
as_root() {
  local prefix=()
  if (( EUID != 0 )); then
    command -v sudo >/dev/null || die "packages are missing and there is no sudo; as root: apt-get install ${missing[*]}"
    prefix=(sudo)
  fi
  "${prefix[@]}" env DEBIAN_FRONTEND=noninteractive "$@" </dev/null >>"$root/build/setup.log" 2>&1
}

install_missing() {
  local apt=(apt-get -y -q -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0)
  local seconds=$SECONDS
  : >"$root/build/setup.log"
  # The package lists are fetched if a name is missing from them, and once more if they turn out to be stale.
  if ! apt-cache show "${missing[@]}" >/dev/null 2>&1; then
    say "fetching package lists"
    as_root "${apt[@]}" update || say "warning: apt-get update failed (build/setup.log); using the present lists"
  fi
  say "installing ${missing[*]}"
  if ! as_root "${apt[@]}" install --no-install-recommends "${missing[@]}"; then
    say "fetching package lists and trying again"
    as_root "${apt[@]}" update || true
    as_root "${apt[@]}" install --no-install-recommends "${missing[@]}" || {
      tail -n 20 "$root/build/setup.log" >&2
      die "apt-get could not install the packages above (full log: build/setup.log)"
    }
  fi
  say "packages installed in $((SECONDS - seconds)) s"
}

# need_packages GROUP...: installs what is missing; a stamp named after the list makes later calls free.
need_packages() {
  local sum stamp missing=() names=() installed tool
  sum=$(cksum "$root/tools/packages.txt"); sum=${sum%% *}
  local IFS=-
  stamp="$root/build/.packages-$*-$sum"
  unset IFS
  [[ -e $stamp ]] && return
  mkdir -p "$root/build"
  mapfile -t names < <(packages "$@")
  if command -v dpkg-query >/dev/null && command -v apt-get >/dev/null; then
    installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "${names[@]}" 2>/dev/null || true)
    local name
    for name in "${names[@]}"; do
      grep -qxF "$name installed" <<<"$installed" || missing+=("$name")
    done
    (( ${#missing[@]} == 0 )) || install_missing
  else
    say "this is not Debian: nothing is installed for you. Needed, by their Debian names: ${names[*]}"
    for tool in cmake ninja c++; do
      command -v "$tool" >/dev/null || die "$tool is not on this machine; install the packages above with your system's tool"
    done
  fi
  touch "$stamp"
}

# A failure may mean that a package was removed: the next call checks again.
build_failed() { rm -f "$root"/build/.packages-*; die "$@"; }

# configured PRESET: whether its build folder is ready, belongs to this folder (which may have been moved), and is up to
# date with the presets.
configured() {
  local dir=build/$1
  [[ -e $dir/.configured && -e $dir/build.ninja && ! CMakePresets.json -nt $dir/.configured ]] &&
    grep -qsxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$dir/CMakeCache.txt"
}

# has_option PRESET NAME=VALUE: whether the build folder was configured with it.
has_option() { grep -qsxF "${2%%=*}:BOOL=${2#*=}" "build/$1/CMakeCache.txt"; }

# configure PRESET [CMAKE OPTION...]
configure() {
  local preset=$1 dir=build/$1; shift
  if [[ -e $dir/CMakeCache.txt ]] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$dir/CMakeCache.txt"; then rm -rf "$dir"; fi
  say "configuring $dir"
  mkdir -p "$dir"
  if ! cmake --preset "$preset" "$@" </dev/null >"$dir/configure.log" 2>&1; then
    grep -A 12 'CMake Error' "$dir/configure.log" >&2 || tail -n 20 "$dir/configure.log" >&2
    build_failed "cmake could not configure $dir (full log: $dir/configure.log)"
  fi
  touch "$dir/.configured"
}

# A source file with a time in the future would be newer than every build of it: its time is set to now.
end_future() {
  local ahead=()
  mapfile -d '' -t ahead < <(find "$root/src" "$root/cmake" "$root/CMakeLists.txt" "$root/CMakePresets.json" "$root/tools/packages.txt" \
    -newermt '+3 seconds' -print0 2>/dev/null)
  (( ${#ahead[@]} == 0 )) && return
  say "note: ${#ahead[@]} source files have a time in the future (${ahead[0]#"$root"/}); it is set to now"
  touch -- "${ahead[@]}" 2>/dev/null || say "note: their time cannot be set; they will be rebuilt at every start"
}

# build PRESET [TARGET...]: leaves build/PRESET/.built, with the time at which the build began.
# Shows ninja's status line on a terminal, two lines in all elsewhere; compiler output only on failure.
build() {
  local preset=$1; shift
  local log=build/$preset/build.log jobs seconds=$SECONDS
  jobs=$(nproc 2>/dev/null || echo 2)
  run_ninja() { (cd -- "$root/build/$preset" && exec ninja -j "$jobs" "$@" </dev/null); }
  end_future
  touch "build/$preset/.built.new"
  if [[ -t 2 ]]; then
    NINJA_STATUS="${0##*/}: building [%f/%t] " run_ninja "$@" >&2 || build_failed "the build failed"
  else
    say "building build/$preset with $jobs jobs"
    if ! run_ninja "$@" >"$log" 2>&1; then
      grep -vE '^\[[0-9]+/[0-9]+\]' "$log" | cut -c 1-2000 | head -n 80 >&2
      build_failed "the build failed (full log: $log)"
    fi
    say "built in $((SECONDS - seconds)) s"
  fi
  mv "build/$preset/.built.new" "build/$preset/.built"
}

# Two calls at once take turns: lock_build, then unlock_build before the program starts.
lock_build() {
  mkdir -p "$root/build" 2>/dev/null && : 2>/dev/null >>"$root/build/.lock" || die "cannot write in $root/build"
  exec {build_lock}>"$root/build/.lock"
  if command -v flock >/dev/null; then flock "$build_lock"; fi
}
unlock_build() { exec {build_lock}>&-; }
