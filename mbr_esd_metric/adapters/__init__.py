"""External formats and programs: COMET, WMT's data folders, human annotations, Google's mt-metrics-eval."""
