import os

os.environ["KERAS_BACKEND"] = "torch"
import keras, numpy

rng = numpy.random.default_rng(7)
x = rng.normal(size=(640, 5)).astype("float32")
y = (x[:, 0] + x[:, 1] > 0).astype("float32")
keras.utils.set_random_seed(7)
model = keras.Sequential([keras.layers.Dense(8, activation="relu"), keras.layers.Dense(1, activation="sigmoid")])
model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
model.fit(x, y, epochs=3, batch_size=32, validation_split=0.25)
