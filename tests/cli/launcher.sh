# The launcher, with a cmake and a ninja that only pretend: strange environments, folders that cannot be written, clocks that are wrong.
source_dir=$(realpath "$(dirname "$test_file")/../..")
project=$folder/project
mkdir -p "$project/src" "$project/cmake" "$project/tools" "$project/build" "$folder/stubs"
chmod 755 "$folder"
cp "$source_dir/qkv" "$source_dir/test" "$project/"
cp "$source_dir/tools/setup.sh" "$source_dir/tools/packages.txt" "$project/tools/"
touch "$project/CMakeLists.txt" "$project/CMakePresets.json" "$project/src/a.cpp"
sum=$(cksum "$project/tools/packages.txt")
touch "$project/build/.packages-build-${sum%% *}"
printf '#!/bin/sh\necho "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" >build/release/CMakeCache.txt\ntouch build/release/build.ninja\n' >"$folder/stubs/cmake"
printf '#!/bin/sh\nmkdir -p bin\nprintf "#!/bin/sh\\necho ran \\"\\$@\\"\\n" >bin/qkv\nchmod +x bin/qkv\necho x >>builds\n' >"$folder/stubs/ninja"
chmod +x "$folder"/stubs/*
export PATH=$folder/stubs:$PATH
QKV=$project/qkv
builds() { wc -l <"$project/build/release/builds"; }

# cd must not follow CDPATH.
mkdir -p "$folder/astray/build/release"
export CDPATH=$folder/astray
run one 'two three'
unset CDPATH
expect_match '^0 ran one two three$' "$code $out"
expect_match '^1$' "$(builds)"

# A second start builds nothing; a source with a time in the future makes one build, not one at every start.
expect 0 '' again
expect_match '^1$' "$(builds)"
touch -d '+1 day' "$project/src/a.cpp"
run future
expect_match '^0 ran future$' "$code $out"
expect_match 'note: 1 source files have a time in the future \(src/a.cpp\); it is set to now' "$err"
expect 0 '' future
expect_match '^2$' "$(builds)"

# A command that needs the data of a package: the program starts the launcher again, which installs it and says so.
(
  mkdir "$folder/apt"
  printf '#!/bin/sh\nexit 0\n' >"$folder/apt/dpkg-query"
  printf '#!/bin/sh\necho "$@" >>"%s"\n' "$folder/installed" >"$folder/apt/apt-get"
  cp "$folder/apt/dpkg-query" "$folder/apt/apt-cache"
  printf '#!/bin/sh\nexec "$@"\n' >"$folder/apt/sudo"
  chmod +x "$folder"/apt/*
  PATH=$folder/apt:$PATH QKV_NEEDS_DATA=1 "$QKV" train 2>"$folder/err" >"$folder/out" </dev/null
)
expect_match '^ran train$' "$(cat "$folder/out")"
expect_match '^qkv: installing dataset-fashion-mnist
qkv: packages installed in [0-9]+ s$' "$(cat "$folder/err")"
expect_match 'install --no-install-recommends dataset-fashion-mnist$' "$(cat "$folder/installed")"

# Where nothing can be written, what is there runs with a note, and what is not there is one clear error.
as_user=()
if ((EUID == 0)); then as_user=(setpriv --reuid 65534 --regid 65534 --clear-groups); else chmod -R a-w "$project"; fi
start() { out=$("${as_user[@]}" "$QKV" "$@" 2>"$folder/err" </dev/null); code=$?; err=$(cat "$folder/err"); }
start mine
expect_match '^0 ran mine$' "$code $out"
expect_match '^$' "$err"
chmod u+w "$project/src" "$project/src/a.cpp"
touch -d '+2 seconds' "$project/src/a.cpp"
((EUID == 0)) || chmod -R a-w "$project"
start mine
expect_match '^0 ran mine$' "$code $out"
checks=$((checks + 1))
[[ $err == "qkv: note: the sources are newer than the program, and $project/build cannot be written; running the existing program" ]] ||
  mismatch "it said: $err"
chmod -R u+w "$project"
rm -r "$project/build"
((EUID == 0)) || chmod -R a-w "$project"
start mine
checks=$((checks + 1))
[[ $code == 1 && $err == "qkv: error: the program is not built yet, and $project/build cannot be written; copy the project to a folder of your own" ]] ||
  mismatch "exit code $code, it said: $err"
chmod -R u+w "$project"
