#!/usr/bin/env bash
# Makes the fonts in this folder anew: subsets of Noto Sans SC (GB 2312, Latin, Greek, signs) and of
# Noto Sans Mono (the same without Chinese). Needs npm and fonttools' pyftsubset on the PATH.
# The same versions give the same bytes.
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fetch() { # package version
  (cd "$work" && mkdir -p "$1" && npm pack --silent "@expo-google-fonts/$1@$2" >/dev/null && tar -xzf expo-google-fonts-"$1"-"$2".tgz -C "$1" --strip-components=1)
}
fetch noto-sans-sc 0.4.3
fetch noto-sans-mono 0.4.2

# Latin with accents, Greek, Cyrillic, punctuation, super- and subscripts, currencies, arrows,
# mathematical signs, box drawing, geometric shapes, marks, full-width forms.
signs=U+20-7E,U+A0-17F,U+192,U+2C6-2DD,U+370-3FF,U+400-45F,U+2000-206F,U+2070-209F,U+20A0-20BF,U+2100-214F,U+2150-218F,U+2190-21FF,U+2200-22FF,U+2460-24FF,U+2500-257F,U+2580-259F,U+25A0-25FF,U+2600-266F,U+2713-2718,U+27E8-27E9,U+3000-303F,U+FB01-FB02,U+FF00-FFEF,U+FFFD
python3 - >"$work/han" <<'P'
for row in range(0xA1, 0xF8):
    for cell in range(0xA1, 0xFF):
        try:
            print(bytes([row, cell]).decode("gb2312"), end="")
        except UnicodeDecodeError:
            pass
P

subset() { # from to options
  # The order of tables and the time stamp are fixed, so that the bytes are.
  pyftsubset "$1" --output-file="$work/out.ttf" --unicodes="$signs" --no-hinting --layout-features=kern,ccmp,locl,mark,pwid --no-recalc-timestamp --name-IDs=0,1,2,3,4,5,6,13,14 --drop-tables+=DSIG,STAT,vhea,vmtx,VORG,BASE "${@:3}"
  gzip -9 -n -c "$work/out.ttf" >"$2.gz"
}
for weight in 400Regular:Regular 700Bold:Bold; do
  source=${weight%:*} name=${weight#*:}
  subset "$work/noto-sans-sc/$source/NotoSansSC_$source.ttf" "NotoSansSC-$name.ttf" --text-file="$work/han"
  subset "$work/noto-sans-mono/$source/NotoSansMono_$source.ttf" "NotoSansMono-$name.ttf"
done
cp "$work/noto-sans-sc/LICENSE_FONT" NotoSansSC-LICENSE.txt
cp "$work/noto-sans-mono/LICENSE_FONT" NotoSansMono-LICENSE.txt
ls -l
