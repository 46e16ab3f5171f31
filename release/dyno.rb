class Dyno < Formula
  desc "Measures databases as performance white papers do"
  homepage "https://github.com/OWNER/dyno"
  version "@VERSION@"
  license any_of: ["MIT", "Apache-2.0"]
  depends_on :linux

  on_intel do
    url "https://github.com/OWNER/dyno/releases/download/v@VERSION@/dyno-x86_64-linux.tar.gz"
    sha256 "@SHA256_x86_64@"
  end

  on_arm do
    url "https://github.com/OWNER/dyno/releases/download/v@VERSION@/dyno-aarch64-linux.tar.gz"
    sha256 "@SHA256_aarch64@"
  end

  def install
    bin.install "dyno"
    man1.install Dir["share/man/man1/*"]
    bash_completion.install "share/bash-completion/completions/dyno"
    zsh_completion.install "share/zsh/site-functions/_dyno"
    fish_completion.install "share/fish/vendor_completions.d/dyno.fish"
    doc.install Dir["share/doc/dyno/*"]
    pkgshare.install Dir["share/dyno/*"]
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/dyno --version")
    system bin/"dyno", "suites"
  end
end
