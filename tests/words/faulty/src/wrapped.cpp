// A phrase in a comment that wraps is found where it begins: the number of heads is no
// multiple of the number of key heads.
/// Of every scorer, by name.
const char* help =
    "the same command again goes "
    "on with the run";
const char* fine = "the number of heads is not a multiple of the number of key heads";
