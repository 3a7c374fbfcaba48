"""Small PDFs, written by hand."""

import base64


def pdf_of(*pages: str) -> bytes:
    """Return a PDF with these texts, one on a page, in ASCII without parentheses."""
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        "<</Type/Catalog/Pages 2 0 R>>",
        f"<</Type/Pages/Count {len(pages)}/Kids[{kids}]>>",
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    for number, text in enumerate(pages):
        content = f"BT /F 12 Tf 10 10 Td ({text}) Tj ET"
        resources = "<</Font<</F 3 0 R>>>>"
        objects += [
            f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 300]/Contents {5 + 2 * number} 0 R/Resources{resources}>>",
            f"<</Length {len(content)}>>\nstream\n{content}\nendstream",
        ]
    body, offsets = "%PDF-1.4\n", list[int]()
    for number, written in enumerate(objects, 1):
        offsets.append(len(body))
        body += f"{number} 0 obj\n{written}\nendobj\n"
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    head = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n"
    trailer = f"trailer\n<</Size {len(objects) + 1}/Root 1 0 R>>\nstartxref\n{len(body)}\n%%EOF\n"
    return f"{body}{head}{table}{trailer}".encode("ascii")


LOCKED_PDF = base64.b85decode(
    "B~V00Eio=L3MJy>&(jJqATS_rVrmLJJPI#Ra&KgHV`Xw6JTzlAV>2*iGC4Iq3O+sxWo~3|VrmL9ATS_rVrmLJJPI#Vd2nSQFHm7;WpfHILvM9%bR"
    "aPbFH31;b0AwFG$1e_QXpLlK0XR%Ze(v_Y6>$TFd%PYY6?6&3NKW7aAhDbLt%7bY;R`@FHm7;Wpf}hATS_O3O+sxWo~3|VrmLBATS_rVrmLJJPI#"
    "Vd2nSQFHm7;WeP7+Wpi(Ja${w4AUr$@K0XRBO=V<hVM1?sAX^|XE-)Z4E-"
    ")ZDAUPmi3NKJ$a%FCGATl5@AW{lGJ_==SWN%_>3N;`wAa7!73OqatFIFHj3NKP1GYT(EWo~D5Xdp2%I0`RNAT%;LG&wdmGC48|FGgu>bY*fNFH>}"
    "3Ze(F{WC|}&AUrT-"
    "H8L_eGBsf{Wi(|tH#B22V`gDvVr6DEF)?8`Ght&iWn(g8WH>f8WMgDAWHdH1H#RXeIWae3VrFDFWi&ntFI6BsH(_LCWjQf9Ib$$lIA&upV_{=8Fg"
    "0a4Wie%9WHmN4GB{#pG-WkqG-Wq6IAJs~HZ(9WG-Wk5W@ct#FflMVJ_<fQ3T19&Z(?c+cyeWC3NRox3NSD*FfcGMFfcG6HZ?UfH6Ugn3NSD*FfcG"
    "MFflbCFfcGMFd%Lq3NSD*FfcGMFf}<KFfcGMFd%Lq3NSD*FfcGMF)=tGFfcGMFd%Lq3NSD*FfcGMF*Y|KFfcGMFd%Lq3NSD*FfcGMGBr0KFfcGMF"
    "d%Lq3UqQ|X>4V33OqatFH>oHWgs>RFH&!BbRaVzFd$M2FG+4@Zy+%sFd$M2FG)loTOd3&I5s#iIAJzoHDWhoH)CWpF=b<6I50IhF*z`0Vq-"
    "TxAUriVHaIXiVK!nlVmD(qV`MZjWn*DDFf}+aIWT2nV>dn^T?#KnZewzJaC9IwATS_O3O+sxb97;Hba--QW(qVnG72RnMNdWw"
)
"""One empty page behind the password “secret”."""
