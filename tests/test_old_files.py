"""Files that earlier versions wrote are read: models of format 1, and data sets from before they had checksums.

The files stand here as they were written, compressed, in base 64.
"""

import base64
import zlib

import pytest

import scansion as sc
from scansion.data import Dataset

X = [[["a", "b"], ["b"], ["a"]]]
TREE = {"top": [(0, 3, "T")], "low": ["x", "y", "x"]}

CRF = """
eNqVVbGO4zYQ3btckTqp0hmqdYYky1qtm70qQIp0d0WwXgiUNLaYo0QfSd+uYxjIB+QTgiB9gPxCPiCH9GnSJLgPuC/IcESttF45uWVDcTjzZuY9krr9
9IzG3suyGgwrmWFZ5i32ni5Yo7lsvIW3X3oVsBJUVqhiFi29xdJL4zwu84gtPX/praSqmUF7iIvXvCnJpVAr2hU8V0ztyBZMw2lAVsrU4yVsHpXxeUl7
TCm202i/WnobZgyoRk/1rs6l0ORwZ5SrlQbTGnOmefulDVNmquTNcOli2gTGKJ5vDeipgVtzbBuiFiCE7rHa5RDLWrIxwOONIeoN8HVlv69x0RGPDSPV
guUgXPO35Lxr3TSsa2hs0GLFhAYbyW4zAc3aVI78JkMtcl6WgMUtArJoji7GLYmkrGE1UIprIlMZl4+YarOhFZ2wS92WJRUeAJeFibVU3FQ1SSfy1dqR
E9osU5unsLKG9GmL5AjEDB4nizazRo6lKnhzF8CQrI3UmucCMqzDwLDRe7tG2aPZoXUu3ZlAU7MVYqhoRsUPdnLOdNZ15Gxr1LhfIam8AeqPbY2k9ppt
jZekxtaptsS6bZBdabkO4Xkwt2WA4tJegNB2VYIgXbtdgaAamCoqgv5aKnhZbVEeoAyk59AlIi4ZXSHbcAYEh9foyI6TrTaaHgdoVm8E1RsGwfEm3vGS
l47r8HjXVoMMMjqNVMmGZWa3AXcMijuJQSmpMg0ky1u7b9SWdHuLuiOT697UZN/KXDsIVLKUdat3Tz4G5VLDQNwbpsjLns6h4hyagsoJDpZdPCFU03mS
zOZhMLuYJcnFRRLSJdOarVtFX1YwEbzmZiJXk9mkP5yTG6YnClhRQTldeoeDd/AfPDb2dSwtDfg0fpXEnu/pitnV1ezab9+1O8+rwI/iawShezeM/PJe
ZOCHD2Oj2AX379mjcmN8nNr4h4/Qo3Di1D+PLE7/Fp6OH+njPPLToIvPHlPMCFga+Ck15Z7Q05zOR4JTP4wo+vi3cq+GWTSAiR/CIIYfxgNpHNppkBFW
EcAP50nP6/+CBCMg86QDOfoFDWFepQOU6BRKOibRf0KNFpS2UIfJx4wzN566+dnZ/fHEzZ+csD89Gx+fff/NX9/t311+uNj/88P73y9f/Pzr5Je//7z8
Q/z0xef1j7+9a+fLDuvJCD7L/wVgC+FO
"""
HIERARCHICAL = """
eNqll7+P40QUx3cPXQnSIegjF0hIvuAZ/4izOikSQkhInFaIRRSXxZrYk3g4xw4e53aXJQUlEkKiowMKCv6GK1ZI/DgKSgoqRAcHoqKggzczduzYTrLJ
ubH95r2Pv+/N84ztPnsgj0vN86Y0IwHJiOdpR5ca90nMWRJrR9rlUAspCWjq+alv4qF2NNSwafVtu4eGmj7Uxkk6JRnYEdzcZ3EgXUJGU5L6IfNJJN0i
NgLDhRw0uqhrSKt8ZAk2+/44oCNTjpE0JRcc7PfgOstSNppnlHczep6p8dKWjMecZlyajS6fgfrSrzCsOo0IZ8V1RONJFnp+Mo+X4yA9ClIa57dZKiqS
QU26s4RzNopoPsJiMJOIcdI2SuOAxZNVK6orRC0KUUUhalGIVhWitQrRRoWoVeEoSvz7IrWAnlcNZ5RNwlyANKG6D2r64LoPbvqYdR+z6WPVfaymj133
sZs+Tt3Hafr06j690ucUbMXrAt0JL0hEH9BIdircxGRKZTNnyUx1Phnlo0PtJA8n556aUjDH8ygSjxHT7Ylo6Xu60KuwKDlrwJS8ixYkauOdFrkUSqVs
uDZgYEbSTD6IQRMFqgtIdKZewDGJOJV6WkPKzlsNy9L5hqjVrtwlUnXslgi0e1Jor6TQ3kmhayV1qrxgHjOa8nrDVdpMdEijE4A2zxLpAI5JlEwuypZL
6YwS0dKFoUyaq9goWl1qPaG3EpCvS2PAzNO80cDM6WRK46xqzwNINElSloVT1dWj8US9dT4Ss9wV8+yLvQDJS5EKg7RJIckURhZ745S+twwAlV6xfHk8
Ixldzm99dDVBUV/5pmR+6HH2vnjVXDDE8ylsiFMQKkkOmOiMs0jM6BGitw1bzAlNWSI2OyQ0BDSSq0ExGrGYcip2QJno3SSlJ+EcaqK6UM5R1QXLzInc
JYU8j0oc7JQ1O5yETNytB3AynUVSLzKM+iDs5wEL8sqg+qhQAxNMZEtJJbH3bjLieY9CzYJkqipbzuQDmo4STiuVPiOp9JIdXRhn8Aga+1Q+dyH7lEtw
17YMF5muYTnYNhwLyWWVczJRK95JSDsRm7Ksk4w7Zqdsg84Z4Z2UEj+kQXeoLRbaQm/5GBDfMUF2MaPwEfOaY2m6xkMi7u6Zp7r68Fh63jN0bMGKW/9W
WM9ATQa2dBMriFx7q8GvrgQbeku4iZfhK7v9Bg262YqxHYFBT5CK7eiOpSD7pOJYy/BrpoLXYFxDYKqfIxsYTYJr6H2nQsj38PXptDD6jo4QXkLQNhlG
EwHxNcZWIdeg4G1K0BoGNiqMrUraKLBGIOwuKeY+NcFujbFXTWoUa5sScw3DxhXGViVtFBsq2yubzd6mxGph9BwdG26FsVVJCwUIsJqVc+zs8eJAvI5t
p8LY59UBgo57ZWV7+yjpYR27boWxlxLX1U1Drkm1X8kq5i13MwUIQHGqG8VGhNGGcEpE8QdXBbx8fPz6yhqP1kF6CtLy37eZ107sAdFVxDX/i7urFDXv
K2btL3N3Vl83kVHd13auPHz2LBHXqjxeB8EKsmvlcTsR9n2U79j7VL6VCf2BXMXcpfKtLJhFsWMsOvXjID8O8/ONg83HYe3+xhp7cf/vrYe30F9f3inO
Byv2T+/UOU/l5xc/+eHr29/8PPjo4IVX6B9fXH2uzoN1eou4h7+6+L/jn64+81767avnfxw89/iZd+5+/GjwN7v59D9vfHtVj3/86O0/f7n5/eB3dW6M
T97shR9+8N1grM5XZHR4cFg5/gcA/ipz
"""
DATASET = """
eNqFkcFuwjAMhsvG3mPy2UJJW0rpZTtN2gPshKrItKmGBs3UBARCfbc9Eo9A0nVTC4j6Yvm3/y9O8jPymjiCEBtpKCdDQkByhEJVGzKQgM6o1CtVTlxP
SwMIO1k5xTY51AiqKKyunSs3h29p9fcotHP6k1y18FOEhvw/uWDIo9R6jfqSpRgkBNcEHmHIHGKnMlpu11QdJoOc8JoTMpz5DYfWW9nzvg3tMPNx3lxj
lfcPDfz7xnmEnMUX2xu5N13KR9yBTG+8AIuR8yCt62evjQevH3/144Xefrs3bvNTrzt+/c2nl24etTxaJtn+DFmxlbU=
"""


def stored(text, path):
    path.write_bytes(zlib.decompress(base64.b64decode(text)))
    return path


@pytest.mark.parametrize("mmap", [True, False])
@pytest.mark.parametrize(
    ("text", "y", "log_likelihood"),
    [(CRF, ["x", "y", "x"], -1.5041459861765274), (HIERARCHICAL, TREE, -1.1546985402625127)],
    ids=["crf", "hierarchical"],
)
def test_models_of_format_1(text, y, log_likelihood, mmap, tmp_path):
    model = sc.load(stored(text, tmp_path / "model"), mmap=mmap)
    assert model.log_likelihood(X, [y]) == pytest.approx(log_likelihood, rel=1e-12)


@pytest.mark.parametrize("mmap", [True, False])
def test_data_sets_without_checksums(mmap, tmp_path):
    data = Dataset.load(stored(DATASET, tmp_path / "data"), mmap=mmap)
    assert data.items() == [[("a", 2.5), ("b:c", 1.0)], [("x", 1.0)]]
