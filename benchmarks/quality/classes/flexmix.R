# Mixture of logistic regressions with one component per learner, the number of components by BIC.
# Rscript flexmix.R folder most restarts seed: reads train.csv and test.csv, writes answers.csv and clusters.csv.
suppressPackageStartupMessages(library(flexmix))
arguments <- commandArgs(trailingOnly = TRUE)
home <- arguments[1]
set.seed(as.integer(arguments[4]))
rows <- read.csv(file.path(home, "train.csv"), colClasses = c(g = "character"))
ahead <- read.csv(file.path(home, "test.csv"), colClasses = c(g = "character"))
rows$g <- factor(rows$g)
inputs <- paste(setdiff(names(rows), c("g", "y")), collapse = " + ")
formula <- as.formula(paste("cbind(y, 1 - y) ~", inputs, "| g"))
fit <- function(k) tryCatch(
  suppressWarnings(initFlexmix(formula, data = rows, k = k, model = FLXMRglm(family = "binomial"),
                               nrep = if (k == 1) 1 else as.integer(arguments[3]), verbose = FALSE)),
  error = function(e) NULL)
fits <- Filter(Negate(is.null), lapply(1:as.integer(arguments[2]), fit))
best <- fits[[which.min(sapply(fits, BIC))]]
first <- !duplicated(rows$g)
shares <- posterior(best)[first, , drop = FALSE]
rownames(shares) <- as.character(rows$g[first])
answers <- do.call(cbind, suppressWarnings(predict(best, newdata = ahead)))
write.csv(data.frame(probability = rowSums(shares[ahead$g, , drop = FALSE] * answers)),
          file.path(home, "answers.csv"), row.names = FALSE)
write.csv(data.frame(learner = rownames(shares), cluster = clusters(best)[first]),
          file.path(home, "clusters.csv"), row.names = FALSE)
