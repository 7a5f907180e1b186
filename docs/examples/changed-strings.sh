# For a pull request: judge only the strings that it changes in $FILE, and put the errors into its summary.
git show "origin/$GITHUB_BASE_REF:$FILE" > old || : > old
mbr-esd score "$FILE" --changed-from old --model "$MODEL" --fail-under 0.9 \
    --to_csv errors.csv --summary "$GITHUB_STEP_SUMMARY"
