; The installer for Windows (NSIS 3), for one person and without administrator's rights.
;   makensis -DVERSION=0.1.0 -DSOURCE=FOLDER -DICON=FILE.ico -DOUTPUT=FILE.exe installer.nsi
; SOURCE is the folder that PyInstaller made on Windows, with desktop-agent.exe in it.
Unicode true
SetCompressor /SOLID lzma
RequestExecutionLevel user

!include "MUI2.nsh"

!define NAME "Desktop Agent"
!define PROGRAM "desktop-agent.exe"
!define CLASSES "Software\Classes"
!define UNINSTALL "Software\Microsoft\Windows\CurrentVersion\Uninstall\desktop-agent"

Name "${NAME}"
OutFile "${OUTPUT}"
InstallDir "$LOCALAPPDATA\Programs\${NAME}"
InstallDirRegKey HKCU "${UNINSTALL}" "InstallLocation"
BrandingText "${NAME} ${VERSION}"

!define MUI_ICON "${ICON}"
!define MUI_UNICON "${ICON}"
!define MUI_FINISHPAGE_RUN "$INSTDIR\${PROGRAM}"
!insertmacro MUI_PAGE_LICENSE "../../LICENSE"
!insertmacro MUI_PAGE_DIRECTORY
!insertmacro MUI_PAGE_INSTFILES
!insertmacro MUI_PAGE_FINISH
!insertmacro MUI_UNPAGE_CONFIRM
!insertmacro MUI_UNPAGE_INSTFILES
!insertmacro MUI_LANGUAGE "English"
!insertmacro MUI_LANGUAGE "German"
!insertmacro MUI_LANGUAGE "SimpChinese"

VIProductVersion "${VERSION}.0"
VIAddVersionKey /LANG=0 "ProductName" "${NAME}"
VIAddVersionKey /LANG=0 "ProductVersion" "${VERSION}"
VIAddVersionKey /LANG=0 "FileVersion" "${VERSION}"
VIAddVersionKey /LANG=0 "FileDescription" "${NAME}"
VIAddVersionKey /LANG=0 "LegalCopyright" "The Desktop Agent authors"

Section "Install"
    ; No file of an earlier version may stay: PyInstaller loads what lies beside the program.
    RMDir /r "$INSTDIR\_internal"
    SetOutPath "$INSTDIR"
    File /r "${SOURCE}/*"
    CreateShortcut "$SMPROGRAMS\${NAME}.lnk" "$INSTDIR\${PROGRAM}"
    WriteUninstaller "$INSTDIR\uninstall.exe"

    WriteRegStr HKCU "${CLASSES}\desktop-agent" "" "URL:${NAME}"
    WriteRegStr HKCU "${CLASSES}\desktop-agent" "URL Protocol" ""
    WriteRegStr HKCU "${CLASSES}\desktop-agent\DefaultIcon" "" "$INSTDIR\${PROGRAM},0"
    WriteRegStr HKCU "${CLASSES}\desktop-agent\shell\open\command" "" '"$INSTDIR\${PROGRAM}" "%1"'
    WriteRegStr HKCU "${CLASSES}\Applications\${PROGRAM}" "FriendlyAppName" "${NAME}"
    WriteRegStr HKCU "${CLASSES}\Applications\${PROGRAM}\shell\open\command" "" '"$INSTDIR\${PROGRAM}" "%1"'
    WriteRegStr HKCU "${CLASSES}\Applications\${PROGRAM}\SupportedTypes" ".png" ""
    WriteRegStr HKCU "${CLASSES}\Applications\${PROGRAM}\SupportedTypes" ".jpg" ""
    WriteRegStr HKCU "${CLASSES}\Applications\${PROGRAM}\SupportedTypes" ".gif" ""
    WriteRegStr HKCU "${CLASSES}\Applications\${PROGRAM}\SupportedTypes" ".webp" ""
    WriteRegStr HKCU "${CLASSES}\Applications\${PROGRAM}\SupportedTypes" ".txt" ""
    WriteRegStr HKCU "${CLASSES}\Applications\${PROGRAM}\SupportedTypes" ".md" ""

    WriteRegStr HKCU "${UNINSTALL}" "DisplayName" "${NAME}"
    WriteRegStr HKCU "${UNINSTALL}" "DisplayVersion" "${VERSION}"
    WriteRegStr HKCU "${UNINSTALL}" "DisplayIcon" "$INSTDIR\${PROGRAM}"
    WriteRegStr HKCU "${UNINSTALL}" "Publisher" "The Desktop Agent authors"
    WriteRegStr HKCU "${UNINSTALL}" "InstallLocation" "$INSTDIR"
    WriteRegStr HKCU "${UNINSTALL}" "UninstallString" '"$INSTDIR\uninstall.exe"'
    WriteRegDWORD HKCU "${UNINSTALL}" "NoModify" 1
    WriteRegDWORD HKCU "${UNINSTALL}" "NoRepair" 1
SectionEnd

Section "Uninstall"
    ; Conversations and settings are in the person's data folder, and stay.
    RMDir /r "$INSTDIR\_internal"
    Delete "$INSTDIR\${PROGRAM}"
    Delete "$INSTDIR\uninstall.exe"
    RMDir "$INSTDIR"
    Delete "$SMPROGRAMS\${NAME}.lnk"
    DeleteRegKey HKCU "${CLASSES}\desktop-agent"
    DeleteRegKey HKCU "${CLASSES}\Applications\${PROGRAM}"
    DeleteRegKey HKCU "${UNINSTALL}"
SectionEnd
