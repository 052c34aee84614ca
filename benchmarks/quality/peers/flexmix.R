# Mixture of regressions with one component per learner: K by BIC, and K as given.
# Rscript flexmix.R rows.csv K most restarts seed (a third of the restarts where K is not the given one)  ->  two lines of labels, BIC's and the given K's.
suppressPackageStartupMessages(library(flexmix))
arguments <- commandArgs(trailingOnly = TRUE)
rows <- read.csv(arguments[1])
given <- as.integer(arguments[2])
most <- as.integer(arguments[3])
set.seed(as.integer(arguments[5]))
formula <- as.formula(paste("y ~", paste(setdiff(names(rows), c("g", "y")), collapse = " + "), "| g"))
restarts <- as.integer(arguments[4])
fit <- function(k, restarts) suppressWarnings(
  initFlexmix(formula, data = rows, k = k, nrep = if (k == 1) 1 else restarts, verbose = FALSE))
fits <- lapply(1:most, function(k) fit(k, if (k == given) restarts else ceiling(restarts / 3)))
labels <- function(model) clusters(model)[!duplicated(rows$g)]
cat("bic", labels(fits[[which.min(sapply(fits, BIC))]]), "\n")
cat("given", labels(fits[[given]]), "\n")
