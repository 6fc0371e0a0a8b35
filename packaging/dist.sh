#!/bin/sh
# Run by `meson dist` over the tree that goes into the tarball: modes and times that don't depend on who makes it, when or where. The times
# are the commit's, so the same commit gives the same bytes.
set -eu
cd "$MESON_DIST_ROOT"
when=${SOURCE_DATE_EPOCH:-$(git -C "$MESON_SOURCE_ROOT" log -1 --format=%ct)}
chmod -R u=rwX,go=rX .
find . -depth -exec touch -h -d "@$when" {} +
