# The files that `fettle init` writes become part of the program. Where a text to train on is needed,
# it is the licence.
set(FETTLE_INIT ${CMAKE_CURRENT_LIST_DIR})
fettle_embed(init_files
  ${FETTLE_INIT}/study.python.yaml ${FETTLE_INIT}/train.py
  ${FETTLE_INIT}/study.shell.yaml ${FETTLE_INIT}/train.sh
  ${FETTLE_INIT}/study.trainer.yaml ${PROJECT_SOURCE_DIR}/LICENSE)
