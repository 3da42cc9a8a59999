#!/bin/sh
# What people do with git in a workspace. One line a thing that works.
set -e
# The machine's own settings are not granted, which git takes for an error where it finds that there are some.
export GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example
git init -q -b main repository
cd repository
echo one >file
git add file
git commit -q -m one
git switch -q -c side
echo two >>file
git commit -q -a -m two
git switch -q main
git merge -q side
test "$(git log --format=%s | tr '\n' ' ')" = 'two one '
echo commit, branch, merge
git stash list
git gc -q
git fsck --no-progress --strict
echo gc, fsck
git clone -q . ../copy
test -f ../copy/file
echo clone
git diff HEAD~1 --stat | cat
