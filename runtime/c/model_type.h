// What generated code hands to the C API: one static object of it per generated class, given by NAME_model_type().
#pragma once

#include "runtime/c/modelc.h"
#include "runtime/device/model.h"

struct modelc_model_type {
  const modelc::ModelFactory* factory;
};
