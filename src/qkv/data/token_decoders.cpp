// Pieces to text, step by step.
#include "qkv/data/token_decoders.h"

#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "qkv/data/characters.h"
#include "qkv/data/text.h"
#include "qkv/data/token_models.h"

namespace qkv {
namespace {

std::string replaced(const std::string& text, std::string_view what, std::string_view with) {
  if (what.empty() || text.find(what) == std::string::npos) return text;
  std::string out;
  for (size_t at = 0;;) {
    const size_t found = text.find(what, at);
    out.append(text, at, found == std::string::npos ? found : found - at);
    if (found == std::string::npos) return out;
    out += with;
    at = found + what.size();
  }
}

std::string joined(const std::vector<std::string>& pieces) {
  std::string out;
  for (const std::string& piece : pieces) out += piece;
  return out;
}

class WordPieceDecoder : public TokenDecoder {
 public:
  WordPieceDecoder(std::string prefix, bool clean) : prefix_(std::move(prefix)), clean_(clean) {}
  void apply(std::vector<std::string>& pieces) const override {
    for (size_t i = 0; i < pieces.size(); ++i) {
      std::string& piece = pieces[i];
      if (i > 0 && piece.starts_with(prefix_))
        piece.erase(0, prefix_.size());
      else if (i > 0)
        piece.insert(0, " ");
      if (clean_) clean(piece);
    }
  }

 private:
  static void clean(std::string& piece) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kRules = {{{" .", "."},
                                                                                       {" ?", "?"},
                                                                                       {" !", "!"},
                                                                                       {" ,", ","},
                                                                                       {" ' ", "'"},
                                                                                       {" n't", "n't"},
                                                                                       {" 'm", "'m"},
                                                                                       {" do not", " don't"},
                                                                                       {" 's", "'s"},
                                                                                       {" 've", "'ve"},
                                                                                       {" 're", "'re"}}};
    for (const auto& [what, with] : kRules) piece = replaced(piece, what, with);
  }

  std::string prefix_;
  bool clean_;
};

class ByteLevelDecoder : public TokenDecoder {
 public:
  void apply(std::vector<std::string>& pieces) const override {
    std::string bytes;
    for (const std::string& piece : pieces) bytes += bytes_of_signs(piece).value_or(piece);
    pieces = {with_replacements(bytes)};
  }
};

class MetaspaceDecoder : public TokenDecoder {
 public:
  MetaspaceDecoder(std::string sign, bool prepended) : sign_(std::move(sign)), prepended_(prepended) {}
  void apply(std::vector<std::string>& pieces) const override {
    for (size_t i = 0; i < pieces.size(); ++i) pieces[i] = replaced(pieces[i], sign_, i == 0 && prepended_ ? "" : " ");
  }

 private:
  std::string sign_;
  bool prepended_;
};

class SuffixDecoder : public TokenDecoder {
 public:
  explicit SuffixDecoder(std::string suffix) : suffix_(std::move(suffix)) {}
  void apply(std::vector<std::string>& pieces) const override {
    for (size_t i = 0; i < pieces.size(); ++i)
      pieces[i] = replaced(pieces[i], suffix_, i + 1 == pieces.size() ? "" : " ");
  }

 private:
  std::string suffix_;
};

class ByteFallbackDecoder : public TokenDecoder {
 public:
  void apply(std::vector<std::string>& pieces) const override {
    std::vector<std::string> out;
    std::string bytes;
    const auto finish = [&] {
      if (bytes.empty()) return;
      if (find_invalid_utf8(bytes) == std::string_view::npos)
        out.push_back(bytes);
      else
        out.insert(out.end(), bytes.size(), "\xEF\xBF\xBD");
      bytes.clear();
    };
    for (std::string& piece : pieces) {
      if (const auto byte = byte_of_piece(piece)) {
        bytes += static_cast<char>(*byte);
        continue;
      }
      finish();
      out.push_back(std::move(piece));
    }
    finish();
    pieces = std::move(out);
  }
};

class FuseDecoder : public TokenDecoder {
 public:
  void apply(std::vector<std::string>& pieces) const override { pieces = {joined(pieces)}; }
};

class StripDecoder : public TokenDecoder {
 public:
  StripDecoder(std::string sign, int64_t left, int64_t right) : sign_(std::move(sign)), left_(left), right_(right) {}
  void apply(std::vector<std::string>& pieces) const override {
    for (std::string& piece : pieces) {
      for (int64_t i = 0; i < left_ && piece.starts_with(sign_); ++i) piece.erase(0, sign_.size());
      for (int64_t i = 0; i < right_ && piece.ends_with(sign_); ++i) piece.resize(piece.size() - sign_.size());
    }
  }

 private:
  std::string sign_;
  int64_t left_, right_;
};

class ReplaceDecoder : public TokenDecoder {
 public:
  ReplaceDecoder(std::string what, std::string with) : what_(std::move(what)), with_(std::move(with)) {}
  void apply(std::vector<std::string>& pieces) const override {
    for (std::string& piece : pieces) piece = replaced(piece, what_, with_);
  }

 private:
  std::string what_, with_;
};

class DecoderSequence : public TokenDecoder {
 public:
  explicit DecoderSequence(TokenDecoders steps) : steps_(std::move(steps)) {}
  void apply(std::vector<std::string>& pieces) const override {
    for (const auto& step : steps_) step->apply(pieces);
  }

 private:
  TokenDecoders steps_;
};

class SpacesDecoder : public TokenDecoder {
 public:
  void apply(std::vector<std::string>& pieces) const override {
    for (size_t i = 1; i < pieces.size(); ++i) pieces[i].insert(0, " ");
  }
};

}  // namespace

std::unique_ptr<const TokenDecoder> word_piece_decoder(std::string prefix, bool clean) {
  return std::make_unique<WordPieceDecoder>(std::move(prefix), clean);
}
std::unique_ptr<const TokenDecoder> byte_level_decoder() { return std::make_unique<ByteLevelDecoder>(); }
std::unique_ptr<const TokenDecoder> metaspace_decoder(std::string sign, bool prepended) {
  return std::make_unique<MetaspaceDecoder>(std::move(sign), prepended);
}
std::unique_ptr<const TokenDecoder> suffix_decoder(std::string suffix) {
  return std::make_unique<SuffixDecoder>(std::move(suffix));
}
std::unique_ptr<const TokenDecoder> byte_fallback_decoder() { return std::make_unique<ByteFallbackDecoder>(); }
std::unique_ptr<const TokenDecoder> fuse_decoder() { return std::make_unique<FuseDecoder>(); }
std::unique_ptr<const TokenDecoder> strip_decoder(std::string sign, int64_t left, int64_t right) {
  return std::make_unique<StripDecoder>(std::move(sign), left, right);
}
std::unique_ptr<const TokenDecoder> replace_decoder(std::string what, std::string with) {
  return std::make_unique<ReplaceDecoder>(std::move(what), std::move(with));
}
std::unique_ptr<const TokenDecoder> decoder_sequence(TokenDecoders steps) {
  return std::make_unique<DecoderSequence>(std::move(steps));
}
std::unique_ptr<const TokenDecoder> spaces_decoder() { return std::make_unique<SpacesDecoder>(); }

}  // namespace qkv
