# Tables with a learner column that come with packages of R: y, the learner, predictors.
# Usage: Rscript untouched.R FOLDER; a table whose package is missing is left out.

folder <- commandArgs(trailingOnly = TRUE)[1]

from <- function(package, name) {
  space <- new.env()
  data(list = name, package = package, envir = space)
  as.data.frame(space[[name]])
}

yes <- function(factor) as.numeric(as.character(factor))

tables <- list(
  mathachieve = function() {
    d <- from("nlme", "MathAchieve")
    data.frame(y = d$MathAch, learner = d$School, minority = d$Minority == "Yes", male = d$Sex == "Male", ses = d$SES)
  },
  txhousing = function() {
    d <- from("ggplot2", "txhousing")
    d <- d[complete.cases(d), ]
    data.frame(y = log(d$median), learner = d$city, year = d$year, month = d$month, sales = log(d$sales),
               listings = log1p(d$listings), inventory = d$inventory)
  },
  diamonds = function() {
    d <- from("ggplot2", "diamonds")
    set.seed(1)
    d <- d[sample(nrow(d), 20000), ]
    data.frame(y = log(d$price), learner = paste(d$color, d$clarity), carat = d$carat, depth = d$depth,
               table = d$table, length = d$x, width = d$y, height = d$z, cut = as.integer(d$cut))
  },
  egsingle = function() {
    d <- from("mlmRev", "egsingle")
    data.frame(y = d$math, learner = d$schoolid, year = d$year, grade = yes(d$grade), retained = yes(d$retained),
               female = d$female == "Female", black = yes(d$black), hispanic = yes(d$hispanic), lowinc = d$lowinc)
  },
  wlddev = function() {
    d <- from("collapse", "wlddev")
    d <- d[!is.na(d$LIFEEX), ]
    data.frame(y = d$LIFEEX, learner = d$country, year = d$year, gdp = d$PCGDP, oda = d$ODA, population = d$POP)
  },
  chem97 = function() {
    d <- from("mlmRev", "Chem97")
    data.frame(y = d$score, learner = d$lea, gcse = d$gcsescore, male = d$gender == "M", age = d$age)
  },
  storms = function() {
    d <- from("dplyr", "storms")
    data.frame(y = d$wind, learner = d$year, pressure = d$pressure, lat = d$lat, long = d$long, month = d$month,
               hour = d$hour)
  },
  vocab = function() {
    d <- from("carData", "Vocab")
    data.frame(y = d$vocabulary, learner = d$year, education = d$education, female = d$sex == "Female")
  },
  scots = function() {
    d <- from("mlmRev", "ScotsSec")
    data.frame(y = d$attain, learner = d$second, verbal = d$verbal, female = d$sex == "F", social = yes(d$social))
  },
  insteval = function() {
    d <- from("lme4", "InstEval")
    set.seed(1)
    d <- d[sample(nrow(d), 20000), ]
    data.frame(y = d$y, learner = d$dept, student = yes(d$studage), lecture = yes(d$lectage), service = yes(d$service))
  },
  baseball = function() {
    d <- from("plyr", "baseball")
    d <- d[d$ab > 100, ]
    data.frame(y = d$r, learner = d$team, year = d$year, ab = d$ab, h = d$h, hr = d$hr, bb = d$bb, sb = d$sb)
  },
  star = function() {
    d <- from("mlmRev", "star")
    d <- d[!is.na(d$math), ]
    data.frame(y = d$math, learner = d$sch, read = d$read, grade = as.integer(d$gr), experience = d$exp,
               male = d$sx == "M", small = d$cltype == "small", free_lunch = d$ses == "F")
  }
)

for (name in names(tables)) {
  table <- tryCatch(suppressWarnings(tables[[name]]()), error = function(e) NULL)
  if (!is.null(table)) write.csv(table, file.path(folder, paste0(name, ".csv")), row.names = FALSE)
}
