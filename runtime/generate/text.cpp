#include "runtime/generate/text.h"

#include <algorithm>

namespace modelc {

StopFinder::StopFinder(std::vector<std::string> stop) : stop_(std::move(stop)) {
  std::erase_if(stop_, [](const std::string& s) { return s.empty(); });
}

std::string StopFinder::push(std::string_view piece) {
  if (found_) return {};
  waiting_.append(piece);
  // The one that ends first: it would have ended the text before the others had come.
  std::size_t first = std::string::npos, first_end = std::string::npos;
  for (const std::string& s : stop_) {
    const std::size_t at = waiting_.find(s);
    if (at == std::string::npos) continue;
    const std::size_t end = at + s.size();
    if (end < first_end || (end == first_end && at < first)) first = at, first_end = end;
  }
  if (first != std::string::npos) {
    found_ = true;
    std::string out = waiting_.substr(0, first);
    waiting_.clear();
    return out;
  }
  // The longest end of the text that a stop string begins with stays here.
  std::size_t held = 0;
  for (const std::string& s : stop_)
    for (std::size_t n = std::min(s.size() - 1, waiting_.size()); n > held; --n)
      if (std::string_view(waiting_).ends_with(std::string_view(s).substr(0, n))) held = n;
  std::string out = waiting_.substr(0, waiting_.size() - held);
  waiting_.erase(0, out.size());
  return out;
}

std::string StopFinder::finish() { return std::exchange(waiting_, {}); }

TextStream::TextStream(const Tokenizer* tokenizer, std::vector<std::string> stop, bool skip_special_tokens)
    : finder_(stop), holds_(std::any_of(stop.begin(), stop.end(), [](const std::string& s) { return !s.empty(); })) {
  if (tokenizer) decoder_.emplace(*tokenizer, skip_special_tokens);
}

std::string TextStream::push(std::int32_t id) {
  ++pushed_;
  return give(decoder_ ? decoder_->push(id) : std::string());
}

std::string TextStream::finish() {
  std::string out = give(decoder_ ? decoder_->finish() : std::string());
  if (finder_.found()) return out;
  out += finder_.finish();
  given_tokens_ = pushed_;
  return out;
}

std::string TextStream::give(const std::string& piece) {
  decoded_ += piece.size();
  // A token without text of its own may be the beginning of a character: it goes with the text that comes next.
  if (!piece.empty()) ends_.resize(pushed_, decoded_);
  std::string out = finder_.push(piece);
  given_ += out.size();
  if (!holds_) given_tokens_ = pushed_;
  else
    while (given_tokens_ < ends_.size() && ends_[given_tokens_] <= given_) ++given_tokens_;
  return out;
}

Result<std::vector<TextResult>> generate_text(Model& model, State& state, const Tokenizer& tokenizer, std::span<const std::int32_t> prompt,
                                              const TextOptions& options, const std::function<bool(int, std::string_view)>& on_text) {
  if (options.count < 1 || options.count > state.sequences())
    return Error{
        "sequences",
        "asked for " + std::to_string(options.count) + " answers, and the state has " + std::to_string(state.sequences()) + " sequences",
        {},
        "give new_state() as many sequences as there are answers"};
  struct Answer {
    TextStream stream;
    std::string text;
    bool closed = false;                                   // the callback wants no more
  };
  std::vector<Answer> answers;
  std::vector<Prompt> prompts;
  for (int i = 0; i < options.count; ++i) {
    answers.push_back({TextStream(&tokenizer, options.stop, options.skip_special_tokens), {}});
    prompts.push_back({i, {prompt.begin(), prompt.end()}, options.tokens.sampler.seed + static_cast<std::uint64_t>(i)});
  }
  const auto give = [&](std::size_t i, std::string_view piece) {
    Answer& a = answers[i];
    a.text += piece;
    if (!piece.empty() && on_text && !on_text(static_cast<int>(i), piece)) a.closed = true;
  };
  auto results = generate_batch(model, state, prompts, options.tokens, [&](std::size_t i, std::int32_t id) {
    Answer& a = answers[i];
    give(i, a.stream.push(id));
    return !a.stream.stopped() && !a.closed;
  });
  if (!results) return std::move(results.error());
  std::vector<TextResult> texts;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    Answer& a = answers[i];
    GenerateResult& tokens = (*results)[i];
    if (!a.stream.stopped() && !a.closed) give(i, a.stream.finish());
    if (a.stream.stopped()) {
      tokens.finish = Finish::stop_string;
      tokens.tokens.resize(a.stream.tokens());
    }
    texts.push_back({std::move(a.text), std::move(tokens)});
  }
  return texts;
}

}  // namespace modelc
