<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="de" sourcelanguage="en">
<context>
    <name>AboutPage</name>
    <message>
        <source>Open folder</source>
        <translation>Ordner öffnen</translation>
    </message>
    <message>
        <source>Open the data folder</source>
        <translation>Datenordner öffnen</translation>
    </message>
    <message>
        <source>Data folder</source>
        <translation>Datenordner</translation>
    </message>
    <message>
        <source>Conversations, pictures and settings. Keys are never here; they go into the keyring of your system.</source>
        <translation>Unterhaltungen, Bilder und Einstellungen. Schlüssel liegen nie hier; sie kommen in den Schlüsselbund Ihres Systems.</translation>
    </message>
    <message>
        <source>Licence</source>
        <translation>Lizenz</translation>
    </message>
    <message>
        <source>MIT. You may use, change and pass on this program; it comes without any warranty.</source>
        <translation>MIT. Sie dürfen dieses Programm benutzen, ändern und weitergeben; es kommt ohne jede Gewährleistung.</translation>
    </message>
    <message>
        <source>All licences</source>
        <translation>Alle Lizenzen</translation>
    </message>
    <message>
        <source>Version {0}</source>
        <translation>Version {0}</translation>
    </message>
    <message>
        <source>Desktop Agent</source>
        <translation>Desktop Agent</translation>
    </message>
</context>
<context>
    <name>ActivityNotifier</name>
    <message>
        <source>A conversation that is not stored</source>
        <translation>Eine Unterhaltung, die nicht gespeichert wird</translation>
    </message>
    <message>
        <source>The answer is done.</source>
        <translation>Die Antwort ist fertig.</translation>
    </message>
    <message>
        <source>The answer could not be finished.</source>
        <translation>Die Antwort konnte nicht abgeschlossen werden.</translation>
    </message>
    <message>
        <source>A question waits for your answer.</source>
        <translation>Eine Frage wartet auf Ihre Antwort.</translation>
    </message>
</context>
<context>
    <name>AnswerBar</name>
    <message>
        <source>Esc closes without an answer.</source>
        <translation>Esc schließt ohne Antwort.</translation>
    </message>
</context>
<context>
    <name>AnswerChoices</name>
    <message>
        <source>Answer in your own words</source>
        <translation>Mit eigenen Worten antworten</translation>
    </message>
    <message>
        <source>{0}. {1}</source>
        <translation>{0}. {1}</translation>
    </message>
    <message>
        <source>Key {0}</source>
        <translation>Taste {0}</translation>
    </message>
</context>
<context>
    <name>ApprovalDialog</name>
    <message>
        <source>Waiting calls</source>
        <translation>Wartende Aufrufe</translation>
    </message>
    <message>
        <source>{0} calls are waiting</source>
        <translation>{0} Aufrufe warten</translation>
    </message>
    <message>
        <source>No rule can be made from this call.</source>
        <translation>Aus diesem Aufruf lässt sich keine Regel machen.</translation>
    </message>
    <message>
        <source>You are asked about every call of this tool.</source>
        <translation>Bei jedem Aufruf dieses Werkzeugs werden Sie gefragt.</translation>
    </message>
    <message>
        <source>A rule is made from the original arguments. Discard your edits to make one.</source>
        <translation>Eine Regel entsteht aus den ursprünglichen Argumenten. Verwerfen Sie Ihre Änderungen, um eine anzulegen.</translation>
    </message>
    <message>
        <source>Approve tool call</source>
        <translation>Werkzeugaufruf freigeben</translation>
    </message>
</context>
<context>
    <name>ArgumentsPane</name>
    <message>
        <source>Schema of the arguments as JSON</source>
        <translation>Schema der Argumente als JSON</translation>
    </message>
    <message>
        <source>Hide JSON</source>
        <translation>JSON ausblenden</translation>
    </message>
    <message>
        <source>Show as JSON</source>
        <translation>Als JSON anzeigen</translation>
    </message>
    <message>
        <source>Hide arguments</source>
        <translation>Argumente ausblenden</translation>
    </message>
    <message>
        <source>No arguments listed</source>
        <translation>Keine Argumente genannt</translation>
    </message>
    <message>
        <source>Show 1 argument</source>
        <translation>1 Argument anzeigen</translation>
    </message>
    <message>
        <source>Show {0} arguments</source>
        <translation>{0} Argumente anzeigen</translation>
    </message>
    <message>
        <source>The first {0} of {1} characters.</source>
        <translation>Die ersten {0} von {1} Zeichen.</translation>
    </message>
    <message>
        <source>The server lists no arguments for this tool.</source>
        <translation>Der Server nennt keine Argumente für dieses Werkzeug.</translation>
    </message>
    <message>
        <source>These are the first {0}. The others are in the JSON.</source>
        <translation>Das sind die ersten {0}. Die anderen stehen im JSON.</translation>
    </message>
    <message>
        <source>required</source>
        <translation>erforderlich</translation>
    </message>
    <message>
        <source>optional</source>
        <translation>optional</translation>
    </message>
    <message>
        <source>One of: {0} and {1} more</source>
        <translation>Eines von: {0} und {1} weitere</translation>
    </message>
    <message>
        <source>One of: {0}</source>
        <translation>Eines von: {0}</translation>
    </message>
    <message>
        <source>Default: {0}</source>
        <translation>Standard: {0}</translation>
    </message>
</context>
<context>
    <name>ArgumentsView</name>
    <message>
        <source>Arguments</source>
        <translation>Argumente</translation>
    </message>
    <message>
        <source>Arguments as JSON</source>
        <translation>Argumente als JSON</translation>
    </message>
    <message>
        <source>Arguments, without the last {0} characters: “Edit arguments” shows all of them</source>
        <translation>Argumente ohne die letzten {0} Zeichen: „Argumente bearbeiten“ zeigt alle</translation>
    </message>
    <message>
        <source>Checking…</source>
        <translation>Wird geprüft…</translation>
    </message>
</context>
<context>
    <name>AttachmentChip</name>
    <message>
        <source>Remove</source>
        <translation>Entfernen</translation>
    </message>
</context>
<context>
    <name>AttachmentRow</name>
    <message>
        <source>Remove all</source>
        <translation>Alle entfernen</translation>
    </message>
    <message>
        <source>Attachments</source>
        <translation>Anhänge</translation>
    </message>
    <message>
        <source>This text comes from a link. Read all of it before you send it.</source>
        <translation>Dieser Text stammt aus einem Link. Lesen Sie ihn ganz, bevor Sie ihn senden.</translation>
    </message>
</context>
<context>
    <name>Attachments</name>
    <message>
        <source>All files</source>
        <translation>Alle Dateien</translation>
    </message>
    <message>
        <source>Pictures</source>
        <translation>Bilder</translation>
    </message>
    <message>
        <source>Pasted picture</source>
        <translation>Eingefügtes Bild</translation>
    </message>
    <message>
        <source>Picture</source>
        <translation>Bild</translation>
    </message>
    <message>
        <source>Cannot be read now</source>
        <translation>Kann gerade nicht gelesen werden</translation>
    </message>
    <message>
        <source>Attached resource: {0}</source>
        <translation>Angehängte Ressource: {0}</translation>
    </message>
    <message>
        <source>Preparing…</source>
        <translation>Wird vorbereitet…</translation>
    </message>
    <message>
        <source>Reading…</source>
        <translation>Wird gelesen…</translation>
    </message>
    <message>
        <source>Pasted text, {0}</source>
        <translation>Eingefügter Text, {0}</translation>
    </message>
    <message>
        <source>Sent after the message</source>
        <translation>Wird nach der Nachricht gesendet</translation>
    </message>
    <message>
        <source>Attached file: {0}</source>
        <translation>Angehängte Datei: {0}</translation>
    </message>
    <message>
        <source>{0} · from {1}</source>
        <translation>{0} · von {1}</translation>
    </message>
    <message>
        <source>{0} · about {1} tokens</source>
        <translation>{0} · etwa {1} Token</translation>
    </message>
    <message>
        <source>Attached image: {0}</source>
        <translation>Angehängtes Bild: {0}</translation>
    </message>
</context>
<context>
    <name>AuditLogSettings</name>
    <message>
        <source>No tool has been called yet.</source>
        <translation>Es wurde noch kein Werkzeug aufgerufen.</translation>
    </message>
    <message>
        <source>Decisions</source>
        <translation>Entscheidungen</translation>
    </message>
    <message>
        <source>Details of the decision</source>
        <translation>Einzelheiten der Entscheidung</translation>
    </message>
    <message>
        <source>Show older</source>
        <translation>Ältere anzeigen</translation>
    </message>
    <message>
        <source>Export…</source>
        <translation>Exportieren…</translation>
    </message>
    <message>
        <source>Every tool call that a model asked for: who decided, and how it ended.</source>
        <translation>Jeder Werkzeugaufruf, um den ein Modell gebeten hat: wer entschieden hat und wie er endete.</translation>
    </message>
    <message>
        <source>Allowed by you</source>
        <translation>Von Ihnen erlaubt</translation>
    </message>
    <message>
        <source>Allowed by a rule</source>
        <translation>Durch eine Regel erlaubt</translation>
    </message>
    <message>
        <source>Allowed by the mode</source>
        <translation>Durch den Modus erlaubt</translation>
    </message>
    <message>
        <source>Allowed without asking: it only reads</source>
        <translation>Ohne Nachfrage erlaubt: liest nur</translation>
    </message>
    <message>
        <source>Denied by you</source>
        <translation>Von Ihnen abgelehnt</translation>
    </message>
    <message>
        <source>Denied by a rule</source>
        <translation>Durch eine Regel abgelehnt</translation>
    </message>
    <message>
        <source>Denied without asking</source>
        <translation>Ohne Nachfrage abgelehnt</translation>
    </message>
    <message>
        <source>Stopped before it was started</source>
        <translation>Vor dem Start angehalten</translation>
    </message>
    <message>
        <source>Not decided</source>
        <translation>Nicht entschieden</translation>
    </message>
    <message>
        <source>done</source>
        <translation>erledigt</translation>
    </message>
    <message>
        <source>failed</source>
        <translation>fehlgeschlagen</translation>
    </message>
    <message>
        <source>denied</source>
        <translation>abgelehnt</translation>
    </message>
    <message>
        <source>took too long</source>
        <translation>dauerte zu lange</translation>
    </message>
    <message>
        <source>stopped</source>
        <translation>angehalten</translation>
    </message>
    <message>
        <source>stopped at a limit</source>
        <translation>an einer Grenze angehalten</translation>
    </message>
    <message>
        <source>outcome unknown</source>
        <translation>Ergebnis unbekannt</translation>
    </message>
    <message>
        <source>You edited the arguments.</source>
        <translation>Sie haben die Argumente geändert.</translation>
    </message>
</context>
<context>
    <name>BannerArea</name>
    <message>
        <source>Messages of the program</source>
        <translation>Meldungen des Programms</translation>
    </message>
    <message>
        <source>Copy details</source>
        <translation>Einzelheiten kopieren</translation>
    </message>
    <message>
        <source>Undo</source>
        <translation>Rückgängig</translation>
    </message>
</context>
<context>
    <name>BannerFrame</name>
    <message>
        <source>Close this message</source>
        <translation>Diese Meldung schließen</translation>
    </message>
</context>
<context>
    <name>BranchDialog</name>
    <message>
        <source>The dot marks the end of the branch you see. Expand a message to see its other versions, in grey.</source>
        <translation>Der Punkt markiert das Ende des gezeigten Zweigs. Klappen Sie eine Nachricht auf, um ihre anderen Versionen in Grau zu sehen.</translation>
    </message>
    <message>
        <source>Show</source>
        <translation>Anzeigen</translation>
    </message>
    <message>
        <source>Branch from here</source>
        <translation>Ab hier verzweigen</translation>
    </message>
    <message>
        <source>Delete…</source>
        <translation>Löschen…</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>Schließen</translation>
    </message>
    <message>
        <source>Branches</source>
        <translation>Zweige</translation>
    </message>
    <message>
        <source>Menu: {0}</source>
        <translation>Menü: {0}</translation>
    </message>
    <message>
        <source>Message</source>
        <translation>Nachricht</translation>
    </message>
</context>
<context>
    <name>BranchModel</name>
    <message>
        <source>You</source>
        <translation>Sie</translation>
    </message>
    <message>
        <source>Assistant</source>
        <translation>Assistent</translation>
    </message>
    <message>
        <source>Note</source>
        <translation>Hinweis</translation>
    </message>
    <message>
        <source>(a picture)</source>
        <translation>(ein Bild)</translation>
    </message>
    <message>
        <source>(no text)</source>
        <translation>(kein Text)</translation>
    </message>
    <message>
        <source>{0} tool calls</source>
        <translation>{0} Werkzeugaufrufe</translation>
    </message>
    <message>
        <source>1 tool call</source>
        <translation>1 Werkzeugaufruf</translation>
    </message>
    <message>
        <source>{0} other versions</source>
        <translation>{0} andere Versionen</translation>
    </message>
    <message>
        <source>1 other version</source>
        <translation>1 andere Version</translation>
    </message>
    <message>
        <source>{0} messages below</source>
        <translation>{0} Nachrichten darunter</translation>
    </message>
    <message>
        <source>1 below</source>
        <translation>1 darunter</translation>
    </message>
    <message>
        <source>end of the shown branch</source>
        <translation>Ende des gezeigten Zweigs</translation>
    </message>
    <message>
        <source>shown</source>
        <translation>wird gezeigt</translation>
    </message>
</context>
<context>
    <name>BranchTreeView</name>
    <message>
        <source>Branches of this conversation</source>
        <translation>Zweige dieser Unterhaltung</translation>
    </message>
</context>
<context>
    <name>BranchesPresenter</name>
    <message>
        <source>Version {0} of {1}</source>
        <translation>Version {0} von {1}</translation>
    </message>
    <message>
        <source>Undo what the other version changed</source>
        <translation>Rückgängig machen, was die andere Version geändert hat</translation>
    </message>
    <message>
        <source>Undo file changes too…</source>
        <translation>Auch die Dateien zurücksetzen…</translation>
    </message>
    <message>
        <source>With another model</source>
        <translation>Mit einem anderen Modell</translation>
    </message>
    <message>
        <source>With another reasoning level</source>
        <translation>Mit einer anderen Denkstufe</translation>
    </message>
    <message>
        <source>Another model…</source>
        <translation>Anderes Modell…</translation>
    </message>
</context>
<context>
    <name>BudgetBanners</name>
    <message>
        <source>Usage and budgets</source>
        <translation>Verbrauch und Budgets</translation>
    </message>
    <message>
        <source>A budget is used up. {0}: {1}.</source>
        <translation>Ein Budget ist aufgebraucht. {0}: {1}.</translation>
    </message>
    <message>
        <source>A budget is nearly used up. {0}: {1}.</source>
        <translation>Ein Budget ist fast aufgebraucht. {0}: {1}.</translation>
    </message>
</context>
<context>
    <name>CallHeader</name>
    <message>
        <source>The agent {0} asks to use</source>
        <translation>Der Agent {0} möchte verwenden</translation>
    </message>
    <message>
        <source>The assistant asks to use</source>
        <translation>Der Assistent möchte verwenden</translation>
    </message>
    <message>
        <source>In the folder {0}</source>
        <translation>Im Ordner {0}</translation>
    </message>
    <message>
        <source>This call can be undone.</source>
        <translation>Dieser Aufruf lässt sich rückgängig machen.</translation>
    </message>
    <message>
        <source>This call cannot be undone.</source>
        <translation>Dieser Aufruf lässt sich nicht rückgängig machen.</translation>
    </message>
</context>
<context>
    <name>CallNotifier</name>
    <message>
        <source>Show</source>
        <translation>Anzeigen</translation>
    </message>
    <message>
        <source>Deny</source>
        <translation>Ablehnen</translation>
    </message>
    <message>
        <source>Allow once</source>
        <translation>Einmal erlauben</translation>
    </message>
    <message>
        <source>A conversation that is not stored</source>
        <translation>Eine Unterhaltung, die nicht gespeichert wird</translation>
    </message>
    <message>
        <source>A call waits for your approval.</source>
        <translation>Ein Aufruf wartet auf Ihre Freigabe.</translation>
    </message>
    <message>
        <source>The agent {0} asks for your approval:</source>
        <translation>Der Agent {0} bittet um Ihre Freigabe:</translation>
    </message>
    <message>
        <source>A call waits for your approval:</source>
        <translation>Ein Aufruf wartet auf Ihre Freigabe:</translation>
    </message>
</context>
<context>
    <name>Cards</name>
    <message>
        <source>Save or cancel your changes first</source>
        <translation>Erst Ihre Änderungen speichern oder verwerfen</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>Save</source>
        <translation>Speichern</translation>
    </message>
    <message>
        <source>This cannot be saved yet. Check each field.</source>
        <translation>Das lässt sich noch nicht speichern. Prüfen Sie alle Felder.</translation>
    </message>
    <message>
        <source>Undo</source>
        <translation>Rückgängig</translation>
    </message>
</context>
<context>
    <name>ClearableField</name>
    <message>
        <source>Clear</source>
        <translation>Leeren</translation>
    </message>
</context>
<context>
    <name>CloseConfirmation</name>
    <message>
        <source>Close Desktop Agent?</source>
        <translation>Desktop Agent schließen?</translation>
    </message>
    <message>
        <source>Not everything could be saved.</source>
        <translation>Nicht alles konnte gespeichert werden.</translation>
    </message>
    <message>
        <source>If you quit now, unsaved changes are lost.</source>
        <translation>Wenn Sie jetzt beenden, gehen nicht gespeicherte Änderungen verloren.</translation>
    </message>
    <message>
        <source>Keep open</source>
        <translation>Offen lassen</translation>
    </message>
    <message>
        <source>Quit without saving</source>
        <translation>Ohne Speichern beenden</translation>
    </message>
    <message>
        <source>Try again</source>
        <translation>Erneut versuchen</translation>
    </message>
    <message>
        <source>Save elsewhere…</source>
        <translation>Anderswo speichern…</translation>
    </message>
    <message>
        <source>Save unsaved conversations</source>
        <translation>Nicht gespeicherte Unterhaltungen speichern</translation>
    </message>
    <message>
        <source>Unsaved conversations {0}.md</source>
        <translation>Ungespeicherte Unterhaltungen {0}.md</translation>
    </message>
</context>
<context>
    <name>CloudRow</name>
    <message>
        <source>API key for {0}</source>
        <translation>API-Schlüssel für {0}</translation>
    </message>
    <message>
        <source>Paste your API key</source>
        <translation>API-Schlüssel hier einfügen</translation>
    </message>
    <message>
        <source>Connect</source>
        <translation>Verbinden</translation>
    </message>
    <message>
        <source>Connect {0}</source>
        <translation>{0} verbinden</translation>
    </message>
    <message>
        <source>Get a key for {0}</source>
        <translation>Einen Schlüssel für {0} holen</translation>
    </message>
    <message>
        <source>Get a key</source>
        <translation>Schlüssel holen</translation>
    </message>
</context>
<context>
    <name>CommandPalette</name>
    <message>
        <source>Nothing found.</source>
        <translation>Nichts gefunden.</translation>
    </message>
    <message>
        <source>Commands</source>
        <translation>Befehle</translation>
    </message>
    <message>
        <source>Commands, settings, conversations, messages</source>
        <translation>Befehle, Einstellungen, Unterhaltungen, Nachrichten</translation>
    </message>
</context>
<context>
    <name>CommandView</name>
    <message>
        <source>Command line</source>
        <translation>Befehlszeile</translation>
    </message>
    <message>
        <source>What will run: {0} commands</source>
        <translation>Das wird ausgeführt: {0} Befehle</translation>
    </message>
    <message>
        <source>What will run</source>
        <translation>Das wird ausgeführt</translation>
    </message>
    <message>
        <source>“{0}”: the character “{1}” ({2}) only looks like “{3}”.</source>
        <translation>„{0}“: Das Zeichen „{1}“ ({2}) sieht nur aus wie „{3}“.</translation>
    </message>
    <message>
        <source>The shell cannot read this line: {0}</source>
        <translation>Die Shell kann diese Zeile nicht lesen: {0}</translation>
    </message>
    <message>
        <source>This line may run more than is listed here. Read all of it.</source>
        <translation>Diese Zeile führt vielleicht mehr aus, als hier steht. Lesen Sie sie ganz.</translation>
    </message>
    <message>
        <source>In the folder {0}</source>
        <translation>Im Ordner {0}</translation>
    </message>
    <message>
        <source>And {0} more</source>
        <translation>Weitere: {0}</translation>
    </message>
    <message>
        <source>Deletes</source>
        <translation>Löscht</translation>
    </message>
    <message>
        <source>Writes files</source>
        <translation>Schreibt Dateien</translation>
    </message>
    <message>
        <source>Uses the network</source>
        <translation>Nutzt das Netzwerk</translation>
    </message>
    <message>
        <source>Needs privileges</source>
        <translation>Braucht besondere Rechte</translation>
    </message>
    <message>
        <source>Runs code</source>
        <translation>Führt Code aus</translation>
    </message>
    <message>
        <source>Depends on variables</source>
        <translation>Hängt von Variablen ab</translation>
    </message>
    <message>
        <source>Look-alike characters</source>
        <translation>Täuschend ähnliche Zeichen</translation>
    </message>
    <message>
        <source>Commands of the line</source>
        <translation>Befehle der Zeile</translation>
    </message>
</context>
<context>
    <name>Composer</name>
    <message>
        <source>Attach files</source>
        <translation>Dateien anhängen</translation>
    </message>
    <message>
        <source>Your message is sent when the attachments are ready. Press Esc to cancel.</source>
        <translation>Ihre Nachricht wird gesendet, sobald die Anhänge bereit sind. Esc bricht das ab.</translation>
    </message>
</context>
<context>
    <name>ContextOverflowNotice</name>
    <message>
        <source>Summarise older messages</source>
        <translation>Ältere Nachrichten zusammenfassen</translation>
    </message>
    <message>
        <source>Choose another model</source>
        <translation>Ein anderes Modell auswählen</translation>
    </message>
    <message>
        <source>Summarise</source>
        <translation>Zusammenfassen</translation>
    </message>
    <message>
        <source>Another model</source>
        <translation>Anderes Modell</translation>
    </message>
    <message>
        <source>About {0} tokens over the model&apos;s limit of {1}. Shorten your message, or:</source>
        <translation>Etwa {0} Token über dem Limit des Modells von {1}. Kürzen Sie Ihre Nachricht, oder:</translation>
    </message>
</context>
<context>
    <name>Conversation</name>
    <message>
        <source>New conversation</source>
        <translation>Neue Unterhaltung</translation>
    </message>
</context>
<context>
    <name>ConversationList</name>
    <message>
        <source>New conversation</source>
        <translation>Neue Unterhaltung</translation>
    </message>
    <message>
        <source>Search</source>
        <translation>Suchen</translation>
    </message>
    <message>
        <source>New conversation that is not stored</source>
        <translation>Neue Unterhaltung, die nicht gespeichert wird</translation>
    </message>
    <message>
        <source>Search conversations</source>
        <translation>Unterhaltungen durchsuchen</translation>
    </message>
</context>
<context>
    <name>ConversationMenu</name>
    <message>
        <source>Rename…</source>
        <translation>Umbenennen…</translation>
    </message>
    <message>
        <source>Open in new window</source>
        <translation>In neuem Fenster öffnen</translation>
    </message>
    <message>
        <source>Branches…</source>
        <translation>Zweige…</translation>
    </message>
    <message>
        <source>Conversations: {0}</source>
        <translation>Unterhaltungen: {0}</translation>
    </message>
    <message>
        <source>Bring back from the archive</source>
        <translation>Aus dem Archiv zurückholen</translation>
    </message>
    <message>
        <source>Unpin</source>
        <translation>Nicht mehr anheften</translation>
    </message>
    <message>
        <source>Pin</source>
        <translation>Anheften</translation>
    </message>
    <message>
        <source>Move to a folder…</source>
        <translation>In einen Ordner verschieben…</translation>
    </message>
    <message>
        <source>Tags…</source>
        <translation>Schlagwörter…</translation>
    </message>
    <message>
        <source>Archive</source>
        <translation>Archivieren</translation>
    </message>
    <message>
        <source>Duplicate</source>
        <translation>Duplizieren</translation>
    </message>
    <message>
        <source>Merge into one</source>
        <translation>Zu einer zusammenführen</translation>
    </message>
    <message>
        <source>Export…</source>
        <translation>Exportieren…</translation>
    </message>
    <message>
        <source>Copy link</source>
        <translation>Link kopieren</translation>
    </message>
    <message>
        <source>Deselect</source>
        <translation>Auswahl aufheben</translation>
    </message>
    <message>
        <source>Select several</source>
        <translation>Mehrere auswählen</translation>
    </message>
    <message>
        <source>Delete</source>
        <translation>Löschen</translation>
    </message>
</context>
<context>
    <name>ConversationModel</name>
    <message>
        <source>Folder: {0}</source>
        <translation>Ordner: {0}</translation>
    </message>
    <message>
        <source>pinned</source>
        <translation>angeheftet</translation>
    </message>
    <message>
        <source>tags: {0}</source>
        <translation>Schlagwörter: {0}</translation>
    </message>
    <message>
        <source>working</source>
        <translation>arbeitet</translation>
    </message>
    <message>
        <source>waits for you</source>
        <translation>wartet auf Sie</translation>
    </message>
    <message>
        <source>unread</source>
        <translation>ungelesen</translation>
    </message>
</context>
<context>
    <name>ConversationPage</name>
    <message>
        <source>Continue.</source>
        <translation>Mach weiter.</translation>
    </message>
    <message>
        <source>Open settings</source>
        <translation>Einstellungen öffnen</translation>
    </message>
    <message>
        <source>Choose model</source>
        <translation>Modell auswählen</translation>
    </message>
</context>
<context>
    <name>ConversationSettingsDialog</name>
    <message>
        <source>No system prompt</source>
        <translation>Kein Systemprompt</translation>
    </message>
    <message>
        <source>The instructions of its folders are added: {0}</source>
        <translation>Die Anweisungen ihrer Ordner kommen hinzu: {0}</translation>
    </message>
    <message>
        <source>Save</source>
        <translation>Speichern</translation>
    </message>
    <message>
        <source>Use defaults</source>
        <translation>Standardwerte verwenden</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>These settings apply to this conversation, from the next message on.</source>
        <translation>Diese Einstellungen gelten für diese Unterhaltung, ab der nächsten Nachricht.</translation>
    </message>
    <message>
        <source>Conversation settings</source>
        <translation>Einstellungen der Unterhaltung</translation>
    </message>
</context>
<context>
    <name>ConversationView</name>
    <message>
        <source>All folders ({0})</source>
        <translation>Alle Ordner ({0})</translation>
    </message>
    <message>
        <source>Archive</source>
        <translation>Archiv</translation>
    </message>
    <message>
        <source>Conversations</source>
        <translation>Unterhaltungen</translation>
    </message>
    <message>
        <source>Folder</source>
        <translation>Ordner</translation>
    </message>
    <message>
        <source>Conversation</source>
        <translation>Unterhaltung</translation>
    </message>
    <message>
        <source>Menu: {0}</source>
        <translation>Menü: {0}</translation>
    </message>
</context>
<context>
    <name>ConversationWindow</name>
    <message>
        <source>Open in the main window</source>
        <translation>Im Hauptfenster öffnen</translation>
    </message>
</context>
<context>
    <name>CrashPresenter</name>
    <message>
        <source>Show report</source>
        <translation>Bericht anzeigen</translation>
    </message>
</context>
<context>
    <name>CrashReportDialog</name>
    <message>
        <source>This report lists versions and the parts of the program that were running. It contains nothing that you or a model wrote, and it is not sent anywhere: copy it when you report the crash. It stays in this file until the next crash:</source>
        <translation>Der Bericht nennt die Versionen und die Teile des Programms, die gerade liefen. Er enthält nichts, was Sie oder ein Modell geschrieben haben, und wird nirgendwohin gesendet: Kopieren Sie ihn, wenn Sie den Absturz melden. Bis zum nächsten Absturz bleibt er in dieser Datei:</translation>
    </message>
    <message>
        <source>Copy</source>
        <translation>Kopieren</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>Schließen</translation>
    </message>
    <message>
        <source>Report</source>
        <translation>Bericht</translation>
    </message>
    <message>
        <source>Crash report</source>
        <translation>Absturzbericht</translation>
    </message>
    <message>
        <source>Copied</source>
        <translation>Kopiert</translation>
    </message>
</context>
<context>
    <name>CustomRow</name>
    <message>
        <source>Address of the server</source>
        <translation>Adresse des Servers</translation>
    </message>
    <message>
        <source>API key, if the server needs one</source>
        <translation>API-Schlüssel, falls der Server einen verlangt</translation>
    </message>
    <message>
        <source>API key, if needed</source>
        <translation>API-Schlüssel, falls nötig</translation>
    </message>
    <message>
        <source>Connect</source>
        <translation>Verbinden</translation>
    </message>
    <message>
        <source>Connect this address</source>
        <translation>Mit dieser Adresse verbinden</translation>
    </message>
    <message>
        <source>Further addresses…</source>
        <translation>Weitere Adressen…</translation>
    </message>
    <message>
        <source>API</source>
        <translation>Schnittstelle</translation>
    </message>
    <message>
        <source>“{0}” is not a web address. It begins with https:// or http://.</source>
        <translation>„{0}“ ist keine Webadresse. Eine Webadresse beginnt mit https:// oder http://.</translation>
    </message>
</context>
<context>
    <name>DateGroups</name>
    <message>
        <source>Pinned</source>
        <translation>Angeheftet</translation>
    </message>
    <message>
        <source>Today</source>
        <translation>Heute</translation>
    </message>
    <message>
        <source>Yesterday</source>
        <translation>Gestern</translation>
    </message>
    <message>
        <source>Previous 7 days</source>
        <translation>Letzte 7 Tage</translation>
    </message>
    <message>
        <source>Previous 30 days</source>
        <translation>Letzte 30 Tage</translation>
    </message>
    <message>
        <source>MMMM yyyy</source>
        <comment>a month and its year, as QLocale writes dates</comment>
        <translation>MMMM yyyy</translation>
    </message>
</context>
<context>
    <name>DecisionBar</name>
    <message>
        <source>Message to the model</source>
        <translation>Nachricht an das Modell</translation>
    </message>
    <message>
        <source>Allow once</source>
        <translation>Einmal erlauben</translation>
    </message>
    <message>
        <source>Allow for this conversation</source>
        <translation>Für diese Unterhaltung erlauben</translation>
    </message>
    <message>
        <source>Always allow…</source>
        <translation>Immer erlauben…</translation>
    </message>
    <message>
        <source>Edit arguments</source>
        <translation>Argumente bearbeiten</translation>
    </message>
    <message>
        <source>Deny</source>
        <translation>Ablehnen</translation>
    </message>
    <message>
        <source>Deny and stop</source>
        <translation>Ablehnen und anhalten</translation>
    </message>
    <message>
        <source>Also for the other call of “{1}”</source>
        <translation>Auch für den anderen Aufruf von „{1}“</translation>
    </message>
    <message>
        <source>Also for the other {0} calls of “{1}”</source>
        <translation>Auch für die anderen {0} Aufrufe von „{1}“</translation>
    </message>
    <message>
        <source>Discard edits</source>
        <translation>Änderungen verwerfen</translation>
    </message>
    <message>
        <source>Allow both calls once</source>
        <translation>Beide Aufrufe einmal erlauben</translation>
    </message>
    <message>
        <source>Allow these {0} calls once</source>
        <translation>Diese {0} Aufrufe einmal erlauben</translation>
    </message>
</context>
<context>
    <name>DeletionPresenter</name>
    <message>
        <source>Delete message</source>
        <translation>Nachricht löschen</translation>
    </message>
    <message>
        <source>Keep</source>
        <translation>Behalten</translation>
    </message>
    <message>
        <source>Undo file changes first…</source>
        <translation>Erst die Dateien zurücksetzen…</translation>
    </message>
    <message>
        <source>Delete for good</source>
        <translation>Endgültig löschen</translation>
    </message>
    <message>
        <source>Undo what these messages changed</source>
        <translation>Rückgängig machen, was diese Nachrichten geändert haben</translation>
    </message>
    <message>
        <source>Deleted.</source>
        <translation>Gelöscht.</translation>
    </message>
</context>
<context>
    <name>DialectBox</name>
    <message>
        <source>API of the server</source>
        <translation>Schnittstelle des Servers</translation>
    </message>
</context>
<context>
    <name>Dialects</name>
    <message>
        <source>OpenAI Chat Completions</source>
        <translation>OpenAI Chat Completions</translation>
    </message>
    <message>
        <source>OpenAI Responses</source>
        <translation>OpenAI Responses</translation>
    </message>
    <message>
        <source>Anthropic Messages</source>
        <translation>Anthropic Messages</translation>
    </message>
    <message>
        <source>Google Gemini</source>
        <translation>Google Gemini</translation>
    </message>
</context>
<context>
    <name>DiskBanner</name>
    <message>
        <source>Delete them too</source>
        <translation>Auch diese löschen</translation>
    </message>
    <message>
        <source>These folders are gone</source>
        <translation>Diese Ordner gibt es nicht mehr</translation>
    </message>
</context>
<context>
    <name>ElicitationForm</name>
    <message>
        <source>Message from the server</source>
        <translation>Nachricht des Servers</translation>
    </message>
    <message>
        <source>The form, as “{0}” wrote it (not verified):</source>
        <translation>Das Formular, wie „{0}“ es geschrieben hat (nicht geprüft):</translation>
    </message>
    <message>
        <source>The form is broken or has too many fields to be shown. It can only be declined.</source>
        <translation>Das Formular ist fehlerhaft oder hat zu viele Felder, um gezeigt zu werden. Es lässt sich nur ablehnen.</translation>
    </message>
    <message>
        <source>Please correct: {0}</source>
        <translation>Bitte berichtigen: {0}</translation>
    </message>
    <message>
        <source>Please fill in: {0}</source>
        <translation>Bitte ausfüllen: {0}</translation>
    </message>
    <message>
        <source>This looks like a password or a key. Servers may not ask for one in a form: “{0}” gets it just as you typed it.</source>
        <translation>Das sieht nach einem Passwort oder Schlüssel aus. Server dürfen in einem Formular nicht danach fragen: „{0}“ bekommt es so, wie Sie es eingeben.</translation>
    </message>
</context>
<context>
    <name>EndpointCard</name>
    <message>
        <source>API key for {0}</source>
        <translation>API-Schlüssel für {0}</translation>
    </message>
    <message>
        <source>Paste a new API key</source>
        <translation>Neuen API-Schlüssel einfügen</translation>
    </message>
    <message>
        <source>Change key</source>
        <translation>Schlüssel ändern</translation>
    </message>
    <message>
        <source>Change key of {0}</source>
        <translation>Schlüssel von {0} ändern</translation>
    </message>
    <message>
        <source>Edit</source>
        <translation>Bearbeiten</translation>
    </message>
    <message>
        <source>Edit {0}</source>
        <translation>{0} bearbeiten</translation>
    </message>
    <message>
        <source>Test</source>
        <translation>Testen</translation>
    </message>
    <message>
        <source>Test {0}</source>
        <translation>{0} testen</translation>
    </message>
    <message>
        <source>Key set</source>
        <translation>Schlüssel vorhanden</translation>
    </message>
    <message>
        <source>No key</source>
        <translation>Kein Schlüssel</translation>
    </message>
    <message>
        <source>Add key</source>
        <translation>Schlüssel hinzufügen</translation>
    </message>
    <message>
        <source>Remove “{0}” and its key? Conversations stay.</source>
        <translation>„{0}“ und den zugehörigen Schlüssel entfernen? Unterhaltungen bleiben.</translation>
    </message>
    <message>
        <source>Remove “{0}”? Conversations stay.</source>
        <translation>„{0}“ entfernen? Unterhaltungen bleiben.</translation>
    </message>
    <message>
        <source>The key was for another address and is removed. Enter the key for this one.</source>
        <translation>Der Schlüssel galt für eine andere Adresse und wurde entfernt. Geben Sie den Schlüssel für diese ein.</translation>
    </message>
    <message>
        <source>Remove the key of “{0}”? To use it again, enter the key anew.</source>
        <translation>Den Schlüssel von „{0}“ entfernen? Um ihn wieder zu verwenden, geben Sie ihn neu ein.</translation>
    </message>
    <message>
        <source>Remove key</source>
        <translation>Schlüssel entfernen</translation>
    </message>
    <message>
        <source>Remove key of {0}</source>
        <translation>Schlüssel von {0} entfernen</translation>
    </message>
    <message>
        <source>Keep</source>
        <translation>Behalten</translation>
    </message>
    <message>
        <source>Keep the key of {0}</source>
        <translation>Schlüssel von {0} behalten</translation>
    </message>
    <message>
        <source>Really remove the key of {0}</source>
        <translation>Schlüssel von {0} wirklich entfernen</translation>
    </message>
    <message>
        <source>Remove server</source>
        <translation>Server entfernen</translation>
    </message>
    <message>
        <source>Remove server {0}</source>
        <translation>Server {0} entfernen</translation>
    </message>
    <message>
        <source>Keep server {0}</source>
        <translation>Server {0} behalten</translation>
    </message>
    <message>
        <source>Really remove server {0}</source>
        <translation>Server {0} wirklich entfernen</translation>
    </message>
    <message>
        <source>1 further address</source>
        <translation>1 weitere Adresse</translation>
    </message>
    <message>
        <source>{0} further addresses</source>
        <translation>{0} weitere Adressen</translation>
    </message>
</context>
<context>
    <name>EndpointEditor</name>
    <message>
        <source>Cancel editing {0}</source>
        <translation>Bearbeiten von {0} abbrechen</translation>
    </message>
    <message>
        <source>Save {0}</source>
        <translation>{0} speichern</translation>
    </message>
    <message>
        <source>The key belongs to {0} and is not sent to other addresses. Saving removes the key; then enter it again.</source>
        <translation>Der Schlüssel gehört zu {0} und geht an keine andere Adresse. Beim Speichern wird er entfernt; geben Sie ihn danach neu ein.</translation>
    </message>
    <message>
        <source>“{0}” is not a web address. It begins with https:// or http://.</source>
        <translation>„{0}“ ist keine Webadresse. Eine Webadresse beginnt mit https:// oder http://.</translation>
    </message>
    <message>
        <source>Title</source>
        <translation>Titel</translation>
    </message>
    <message>
        <source>Title of {0}</source>
        <translation>Titel von {0}</translation>
    </message>
    <message>
        <source>Address of {0}</source>
        <translation>Adresse von {0}</translation>
    </message>
    <message>
        <source>Address</source>
        <translation>Adresse</translation>
    </message>
    <message>
        <source>API</source>
        <translation>Schnittstelle</translation>
    </message>
    <message>
        <source>API of {0}</source>
        <translation>Schnittstelle von {0}</translation>
    </message>
    <message>
        <source>Models of {0}, if it lists none</source>
        <translation>Modelle von {0}, falls der Server keine nennt</translation>
    </message>
    <message>
        <source>Models</source>
        <translation>Modelle</translation>
    </message>
    <message>
        <source>Further addresses of {0}</source>
        <translation>Weitere Adressen von {0}</translation>
    </message>
</context>
<context>
    <name>ExchangePresenter</name>
    <message>
        <source>Conversation</source>
        <translation>Unterhaltung</translation>
    </message>
    <message>
        <source>Conversations</source>
        <translation>Unterhaltungen</translation>
    </message>
    <message>
        <source>Web page (*.html)</source>
        <translation>Webseite (*.html)</translation>
    </message>
    <message>
        <source>PDF, for printing (*.pdf)</source>
        <translation>PDF zum Drucken (*.pdf)</translation>
    </message>
    <message>
        <source>Markdown (*.md)</source>
        <translation>Markdown (*.md)</translation>
    </message>
    <message>
        <source>Web pages in a folder (*)</source>
        <translation>Webseiten in einem Ordner (*)</translation>
    </message>
    <message>
        <source>PDF files in a folder (*)</source>
        <translation>PDF-Dateien in einem Ordner (*)</translation>
    </message>
    <message>
        <source>Markdown in a folder (*)</source>
        <translation>Markdown in einem Ordner (*)</translation>
    </message>
    <message>
        <source>Archive with pictures, to be imported again (*.zip)</source>
        <translation>Archiv mit Bildern, lässt sich wieder importieren (*.zip)</translation>
    </message>
    <message>
        <source>JSON, to be imported again (*.json)</source>
        <translation>JSON, lässt sich wieder importieren (*.json)</translation>
    </message>
    <message>
        <source>Import conversations</source>
        <translation>Unterhaltungen importieren</translation>
    </message>
    <message>
        <source>Exports (*.zip *.json)</source>
        <translation>Exporte (*.zip *.json)</translation>
    </message>
    <message>
        <source>All files (*)</source>
        <translation>Alle Dateien (*)</translation>
    </message>
    <message>
        <source>Export</source>
        <translation>Exportieren</translation>
    </message>
    <message>
        <source>Stop</source>
        <translation>Anhalten</translation>
    </message>
    <message>
        <source>Open folder</source>
        <translation>Ordner öffnen</translation>
    </message>
    <message>
        <source>Details…</source>
        <translation>Einzelheiten…</translation>
    </message>
    <message>
        <source>{0} ({1} times)</source>
        <translation>{0} ({1}-mal)</translation>
    </message>
    <message>
        <source>And {0} more.</source>
        <translation>Weitere: {0}.</translation>
    </message>
    <message>
        <source>Import</source>
        <translation>Importieren</translation>
    </message>
    <message>
        <source>What was not imported, or only in part</source>
        <translation>Was nicht oder nur zum Teil importiert wurde</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>Schließen</translation>
    </message>
    <message>
        <source>Copy report</source>
        <translation>Bericht kopieren</translation>
    </message>
</context>
<context>
    <name>ExpandableNote</name>
    <message>
        <source>Show all</source>
        <translation>Alles zeigen</translation>
    </message>
    <message>
        <source>Show less</source>
        <translation>Weniger zeigen</translation>
    </message>
</context>
<context>
    <name>FieldRow</name>
    <message>
        <source>“{0}”</source>
        <translation>„{0}“</translation>
    </message>
    <message>
        <source>The server asks for something here that this form cannot show.</source>
        <translation>Der Server verlangt hier etwas, das dieses Formular nicht anzeigen kann.</translation>
    </message>
    <message>
        <source>Choose…</source>
        <translation>Auswählen…</translation>
    </message>
    <message>
        <source>Nothing chosen</source>
        <translation>Nichts gewählt</translation>
    </message>
    <message>
        <source>Optional.</source>
        <translation>Optional.</translation>
    </message>
    <message>
        <source>{0} (optional)</source>
        <translation>{0} (optional)</translation>
    </message>
</context>
<context>
    <name>FileDrops</name>
    <message>
        <source>Drop to attach</source>
        <translation>Zum Anhängen loslassen</translation>
    </message>
</context>
<context>
    <name>FileSaver</name>
    <message>
        <source>Save as</source>
        <translation>Speichern unter</translation>
    </message>
</context>
<context>
    <name>FindBar</name>
    <message>
        <source>Aa</source>
        <translation>Aa</translation>
    </message>
    <message>
        <source>Match case</source>
        <translation>Groß- und Kleinschreibung beachten</translation>
    </message>
    <message>
        <source>|ab|</source>
        <translation>|ab|</translation>
    </message>
    <message>
        <source>Whole words</source>
        <translation>Ganze Wörter</translation>
    </message>
    <message>
        <source>Previous match</source>
        <translation>Vorheriger Treffer</translation>
    </message>
    <message>
        <source>Next match</source>
        <translation>Nächster Treffer</translation>
    </message>
    <message>
        <source>Close find bar</source>
        <translation>Suchleiste schließen</translation>
    </message>
    <message>
        <source>Find in conversation</source>
        <translation>In der Unterhaltung suchen</translation>
    </message>
    <message>
        <source>{0} so far</source>
        <translation>{0} bisher</translation>
    </message>
    <message>
        <source>{0} of {1}</source>
        <translation>{0} von {1}</translation>
    </message>
    <message>
        <source>No matches</source>
        <translation>Keine Treffer</translation>
    </message>
</context>
<context>
    <name>FolderDialog</name>
    <message>
        <source>Name of the folder</source>
        <translation>Name des Ordners</translation>
    </message>
    <message>
        <source>Name</source>
        <translation>Name</translation>
    </message>
    <message>
        <source>Name, colour and instructions</source>
        <translation>Name, Farbe und Anweisungen</translation>
    </message>
    <message>
        <source>New folder</source>
        <translation>Neuer Ordner</translation>
    </message>
    <message>
        <source>Save</source>
        <translation>Speichern</translation>
    </message>
    <message>
        <source>Create</source>
        <translation>Anlegen</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>Instructions for every conversation in this folder</source>
        <translation>Anweisungen für jede Unterhaltung in diesem Ordner</translation>
    </message>
    <message>
        <source>The instructions have more than {0} characters. Shorten them.</source>
        <translation>Die Anweisungen haben mehr als {0} Zeichen. Kürzen Sie sie.</translation>
    </message>
    <message>
        <source>Grey</source>
        <translation>Grau</translation>
    </message>
    <message>
        <source>Red</source>
        <translation>Rot</translation>
    </message>
    <message>
        <source>Orange</source>
        <translation>Orange</translation>
    </message>
    <message>
        <source>Yellow</source>
        <translation>Gelb</translation>
    </message>
    <message>
        <source>Green</source>
        <translation>Grün</translation>
    </message>
    <message>
        <source>Teal</source>
        <translation>Türkis</translation>
    </message>
    <message>
        <source>Blue</source>
        <translation>Blau</translation>
    </message>
    <message>
        <source>Purple</source>
        <translation>Violett</translation>
    </message>
</context>
<context>
    <name>FolderHeader</name>
    <message>
        <source>Menu: {0}</source>
        <translation>Menü: {0}</translation>
    </message>
    <message>
        <source>Folder</source>
        <translation>Ordner</translation>
    </message>
    <message>
        <source>Archive</source>
        <translation>Archiv</translation>
    </message>
    <message>
        <source>All conversations</source>
        <translation>Alle Unterhaltungen</translation>
    </message>
    <message>
        <source>{0}. Go up to: {1}</source>
        <translation>{0}. Aufwärts zu: {1}</translation>
    </message>
    <message>
        <source>{0}
Go up to: {1}</source>
        <translation>{0}
Aufwärts zu: {1}</translation>
    </message>
</context>
<context>
    <name>FolderMenu</name>
    <message>
        <source>Name, colour and instructions…</source>
        <translation>Name, Farbe und Anweisungen…</translation>
    </message>
    <message>
        <source>New folder in it…</source>
        <translation>Neuer Ordner darin…</translation>
    </message>
    <message>
        <source>Move to a folder…</source>
        <translation>In einen Ordner verschieben…</translation>
    </message>
    <message>
        <source>Delete folder…</source>
        <translation>Ordner löschen…</translation>
    </message>
    <message>
        <source>New folder…</source>
        <translation>Neuer Ordner…</translation>
    </message>
</context>
<context>
    <name>FolderPicker</name>
    <message>
        <source>Move to a folder</source>
        <translation>In einen Ordner verschieben</translation>
    </message>
    <message>
        <source>Find a folder, or name a new one</source>
        <translation>Ordner suchen oder neuen benennen</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>No folder</source>
        <translation>Kein Ordner</translation>
    </message>
    <message>
        <source>New folder “{0}”</source>
        <translation>Neuer Ordner „{0}“</translation>
    </message>
</context>
<context>
    <name>Form</name>
    <message>
        <source>This cannot be filled in here.</source>
        <translation>Das lässt sich hier nicht ausfüllen.</translation>
    </message>
    <message>
        <source>An answer is needed here.</source>
        <translation>Hier fehlt eine Antwort.</translation>
    </message>
    <message>
        <source>Choose at least {0} of these.</source>
        <translation>Wählen Sie mindestens {0} davon.</translation>
    </message>
    <message>
        <source>Choose at most {0} of these.</source>
        <translation>Wählen Sie höchstens {0} davon.</translation>
    </message>
    <message>
        <source>This must be a whole number, such as 12.</source>
        <translation>Das muss eine ganze Zahl sein, etwa 12.</translation>
    </message>
    <message>
        <source>This must be a number, such as 12 or 1.5.</source>
        <translation>Das muss eine Zahl sein, etwa 12 oder 1.5.</translation>
    </message>
    <message>
        <source>This must be {0} or more.</source>
        <translation>Das muss mindestens {0} sein.</translation>
    </message>
    <message>
        <source>This must be {0} or less.</source>
        <translation>Das darf höchstens {0} sein.</translation>
    </message>
    <message>
        <source>This must have at least {0} characters; it has {1}.</source>
        <translation>Das muss mindestens {0} Zeichen haben; es hat {1}.</translation>
    </message>
    <message>
        <source>This may have at most {0} characters; it has {1}.</source>
        <translation>Das darf höchstens {0} Zeichen haben; es hat {1}.</translation>
    </message>
    <message>
        <source>This must be an e-mail address, such as ada@example.org.</source>
        <translation>Das muss eine E-Mail-Adresse sein, etwa ada@example.org.</translation>
    </message>
    <message>
        <source>This must be an address, such as https://example.org.</source>
        <translation>Das muss eine Adresse sein, etwa https://example.org.</translation>
    </message>
    <message>
        <source>This must be a date, such as 2026-03-31.</source>
        <translation>Das muss ein Datum sein, etwa 2026-03-31.</translation>
    </message>
    <message>
        <source>This must be a date with a time, such as 2026-03-31T14:30:00Z.</source>
        <translation>Das muss ein Datum mit Uhrzeit sein, etwa 2026-03-31T14:30:00Z.</translation>
    </message>
</context>
<context>
    <name>FoundHistories</name>
    <message>
        <source>{0}, conversations: {1}</source>
        <translation>{0}, Unterhaltungen: {1}</translation>
    </message>
    <message>
        <source>Conversations: {0}</source>
        <translation>Unterhaltungen: {0}</translation>
    </message>
</context>
<context>
    <name>FoundHistoriesDialog</name>
    <message>
        <source>Import</source>
        <translation>Importieren</translation>
    </message>
    <message>
        <source>These programs have conversations on this computer. They are copied, with their tool calls, and can be searched and continued here with any model. The programs&apos; own files are only read.</source>
        <translation>Diese Programme haben Unterhaltungen auf diesem Computer. Sie werden mit ihren Werkzeugaufrufen kopiert und lassen sich hier durchsuchen und mit jedem Modell fortsetzen. Die Dateien der Programme selbst werden nur gelesen.</translation>
    </message>
    <message>
        <source>No conversations of other assistants were found on this computer.</source>
        <translation>Auf diesem Computer wurden keine Unterhaltungen anderer Assistenten gefunden.</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>Schließen</translation>
    </message>
    <message>
        <source>Import from other assistants</source>
        <translation>Aus anderen Assistenten importieren</translation>
    </message>
</context>
<context>
    <name>FoundHistorySettings</name>
    <message>
        <source>Conversations of these programs are shown below your own, are found by the search, and can be continued here with any model. The programs&apos; own files are only read. The search keeps an index of their text in the data folder; it is deleted when you turn a program off.</source>
        <translation>Unterhaltungen dieser Programme erscheinen unter Ihren eigenen, werden von der Suche gefunden und lassen sich hier mit jedem Modell fortsetzen. Die Dateien der Programme selbst werden nur gelesen. Die Suche legt im Datenordner einen Index ihrer Texte an; er wird gelöscht, wenn Sie ein Programm ausschalten.</translation>
    </message>
    <message>
        <source>No conversations of other assistants were found on this computer.</source>
        <translation>Auf diesem Computer wurden keine Unterhaltungen anderer Assistenten gefunden.</translation>
    </message>
</context>
<context>
    <name>FoundPresenter</name>
    <message>
        <source>Show</source>
        <translation>Anzeigen</translation>
    </message>
    <message>
        <source>Not now</source>
        <translation>Nicht jetzt</translation>
    </message>
    <message>
        <source>Never</source>
        <translation>Nie</translation>
    </message>
</context>
<context>
    <name>FoundSection</name>
    <message>
        <source>Conversations of other programs</source>
        <translation>Unterhaltungen anderer Programme</translation>
    </message>
    <message>
        <source>open</source>
        <translation>ausgeklappt</translation>
    </message>
    <message>
        <source>closed</source>
        <translation>eingeklappt</translation>
    </message>
    <message>
        <source>{0}, conversations: {1}, {2}</source>
        <translation>{0}, Unterhaltungen: {1}, {2}</translation>
    </message>
    <message>
        <source>Conversations of {0} on this computer, read only</source>
        <translation>Unterhaltungen von {0} auf diesem Computer, nur zum Lesen</translation>
    </message>
    <message>
        <source>Untitled</source>
        <translation>Ohne Titel</translation>
    </message>
</context>
<context>
    <name>HelpDialog</name>
    <message>
        <source>Guide</source>
        <translation>Anleitung</translation>
    </message>
    <message>
        <source>Keyboard shortcuts</source>
        <translation>Tastenkürzel</translation>
    </message>
    <message>
        <source>About</source>
        <translation>Über</translation>
    </message>
    <message>
        <source>Licences</source>
        <translation>Lizenzen</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>Schließen</translation>
    </message>
    <message>
        <source>guide.md</source>
        <translation>guide_de.md</translation>
    </message>
    <message>
        <source>Help</source>
        <translation>Hilfe</translation>
    </message>
    <message>
        <source>Pages</source>
        <translation>Seiten</translation>
    </message>
    <message>
        <source>Page</source>
        <translation>Seite</translation>
    </message>
</context>
<context>
    <name>Hosts</name>
    <message>
        <source>{0} (looks like “{1}”, but “{2}” is {3})</source>
        <translation>{0} (sieht aus wie „{1}“, aber „{2}“ ist {3})</translation>
    </message>
</context>
<context>
    <name>HttpFields</name>
    <message>
        <source>Sign in with the browser (OAuth)</source>
        <translation>Im Browser anmelden (OAuth)</translation>
    </message>
    <message>
        <source>Save, then press “Sign in…” on the server&apos;s card. Your browser opens a page of the server. The sign-in is kept in the keyring.</source>
        <translation>Speichern Sie, und drücken Sie dann auf der Karte des Servers „Anmelden…“. Ihr Browser öffnet eine Seite des Servers. Die Anmeldung kommt in den Schlüsselbund.</translation>
    </message>
    <message>
        <source>Address</source>
        <translation>Adresse</translation>
    </message>
    <message>
        <source>Headers</source>
        <translation>Kopfzeilen</translation>
    </message>
    <message>
        <source>Sign-in</source>
        <translation>Anmeldung</translation>
    </message>
    <message>
        <source>Enter the address of the server. It begins with https://.</source>
        <translation>Geben Sie die Adresse des Servers ein. Sie beginnt mit https://.</translation>
    </message>
    <message>
        <source>This is not a web address. It begins with https:// or http://.</source>
        <translation>Das ist keine Webadresse. Eine Webadresse beginnt mit https:// oder http://.</translation>
    </message>
    <message>
        <source>The values of the headers belong to {0} and are not sent to other addresses. Enter them again.</source>
        <translation>Die Werte der Kopfzeilen gehören zu {0} und gehen an keine andere Adresse. Geben Sie sie neu ein.</translation>
    </message>
    <message>
        <source>Others on the network can read what is sent to an http:// address. Use https:// if the server offers it.</source>
        <translation>Was an eine http://-Adresse geht, können andere im Netz mitlesen. Verwenden Sie https://, falls der Server es anbietet.</translation>
    </message>
</context>
<context>
    <name>ImportCard</name>
    <message>
        <source>Import {0}</source>
        <translation>{0} importieren</translation>
    </message>
    <message>
        <source>Command line of {0}</source>
        <translation>Befehlszeile von {0}</translation>
    </message>
    <message>
        <source>Address of {0}</source>
        <translation>Adresse von {0}</translation>
    </message>
    <message>
        <source>Plain variables: {0}</source>
        <translation>Gewöhnliche Variablen: {0}</translation>
    </message>
    <message>
        <source>Goes to the keyring: {0}</source>
        <translation>Kommt in den Schlüsselbund: {0}</translation>
    </message>
    <message>
        <source>It is turned off in the other program, and stays off here.</source>
        <translation>Er ist im anderen Programm ausgeschaltet und bleibt es hier.</translation>
    </message>
    <message>
        <source>The other program asks for these values itself: {0}. Enter them with Edit afterwards.</source>
        <translation>Das andere Programm fragt selbst nach diesen Werten: {0}. Tragen Sie sie danach mit „Bearbeiten“ ein.</translation>
    </message>
    <message>
        <source>Desktop Agent does not fill in values in ${…}. Enter them with Edit afterwards.</source>
        <translation>Desktop Agent setzt für ${…} keine Werte ein. Tragen Sie sie danach mit „Bearbeiten“ ein.</translation>
    </message>
</context>
<context>
    <name>ImportPanel</name>
    <message>
        <source>{&quot;mcpServers&quot;: {&quot;files&quot;: {&quot;command&quot;: &quot;npx&quot;, &quot;args&quot;: [&quot;-y&quot;, &quot;…&quot;]}}}</source>
        <translation>{&quot;mcpServers&quot;: {&quot;files&quot;: {&quot;command&quot;: &quot;npx&quot;, &quot;args&quot;: [&quot;-y&quot;, &quot;…&quot;]}}}</translation>
    </message>
    <message>
        <source>Servers as JSON</source>
        <translation>Server als JSON</translation>
    </message>
    <message>
        <source>Programs run on this computer, with your rights. Read each command line, and import only what you know.</source>
        <translation>Programme laufen auf Ihrem Computer, mit Ihren Rechten. Lesen Sie jede Befehlszeile, und importieren Sie nur, was Sie kennen.</translation>
    </message>
    <message>
        <source>Import</source>
        <translation>Importieren</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>From {0}</source>
        <translation>Aus {0}</translation>
    </message>
    <message>
        <source>{0} can be imported, {1} cannot.</source>
        <translation>Importierbar: {0}, nicht importierbar: {1}.</translation>
    </message>
    <message>
        <source>Import 1 server</source>
        <translation>1 Server importieren</translation>
    </message>
    <message>
        <source>Import {0} servers</source>
        <translation>{0} Server importieren</translation>
    </message>
    <message>
        <source>JSON (*.json *.jsonc)</source>
        <translation>JSON (*.json *.jsonc)</translation>
    </message>
    <message>
        <source>All files (*)</source>
        <translation>Alle Dateien (*)</translation>
    </message>
    <message>
        <source>Choose a file of servers</source>
        <translation>Datei mit Servern auswählen</translation>
    </message>
    <message>
        <source>Import servers</source>
        <translation>Server importieren</translation>
    </message>
    <message>
        <source>Paste the JSON that a server&apos;s page gives for other programs, or choose a file. Nothing is started yet.</source>
        <translation>Fügen Sie das JSON ein, das die Seite eines Servers für andere Programme angibt, oder wählen Sie eine Datei. Noch wird nichts gestartet.</translation>
    </message>
    <message>
        <source>Choose file…</source>
        <translation>Datei auswählen…</translation>
    </message>
</context>
<context>
    <name>InboxDialog</name>
    <message>
        <source>Calls that wait for you</source>
        <translation>Aufrufe, die auf Sie warten</translation>
    </message>
    <message>
        <source>Open the conversation of a call to see all of it and to decide.</source>
        <translation>Öffnen Sie die Unterhaltung eines Aufrufs, um ihn ganz zu sehen und zu entscheiden.</translation>
    </message>
    <message>
        <source>Nothing waits for you. Calls that need your approval are listed here, from all conversations.</source>
        <translation>Nichts wartet auf Sie. Hier stehen Aufrufe aus allen Unterhaltungen, die Ihre Freigabe brauchen.</translation>
    </message>
    <message>
        <source>Open</source>
        <translation>Öffnen</translation>
    </message>
    <message>
        <source>Open the conversation</source>
        <translation>Die Unterhaltung öffnen</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>Schließen</translation>
    </message>
    <message>
        <source>Waiting calls: {0}</source>
        <translation>Wartende Aufrufe: {0}</translation>
    </message>
    <message>
        <source>A tool</source>
        <translation>Ein Werkzeug</translation>
    </message>
    <message>
        <source>The agent {0} asks</source>
        <translation>Der Agent {0} fragt</translation>
    </message>
    <message>
        <source>The assistant asks</source>
        <translation>Der Assistent fragt</translation>
    </message>
    <message>
        <source>since {0}</source>
        <translation>seit {0}</translation>
    </message>
    <message>
        <source>{0}. {1}, in the conversation {2}, {3}</source>
        <translation>{0}. {1}, in der Unterhaltung {2}, {3}</translation>
    </message>
    <message>
        <source>{0} · {1}</source>
        <translation>{0} · {1}</translation>
    </message>
    <message>
        <source>Waiting approvals</source>
        <translation>Wartende Freigaben</translation>
    </message>
</context>
<context>
    <name>Json</name>
    <message>
        <source>Line {0}, column {1}: {2}</source>
        <translation>Zeile {0}, Spalte {1}: {2}</translation>
    </message>
    <message>
        <source>This is nested too deep. Remove some levels.</source>
        <translation>Das ist zu tief verschachtelt. Entfernen Sie einige Ebenen.</translation>
    </message>
    <message>
        <source>A number has too many digits. Write it shorter, or as text.</source>
        <translation>Eine Zahl hat zu viele Ziffern. Schreiben Sie sie kürzer oder als Text.</translation>
    </message>
    <message>
        <source>The arguments must be a JSON object: write {…} around them.</source>
        <translation>Die Argumente müssen ein JSON-Objekt sein: Schreiben Sie {…} darum.</translation>
    </message>
    <message>
        <source>There is nothing here. Write {} if there are no arguments.</source>
        <translation>Hier steht nichts. Schreiben Sie {}, wenn es keine Argumente gibt.</translation>
    </message>
    <message>
        <source>A name in double quotes is missing here. Write one, or remove the comma before it.</source>
        <translation>Hier fehlt ein Name in doppelten Anführungszeichen. Ergänzen Sie ihn, oder entfernen Sie das Komma davor.</translation>
    </message>
    <message>
        <source>There is a comma too many. Remove it.</source>
        <translation>Ein Komma ist zu viel. Entfernen Sie es.</translation>
    </message>
    <message>
        <source>A colon is missing here, between a name and its value. Write one.</source>
        <translation>Hier fehlt ein Doppelpunkt zwischen einem Namen und seinem Wert. Ergänzen Sie ihn.</translation>
    </message>
    <message>
        <source>A comma, or the closing bracket, is missing here. Write it.</source>
        <translation>Hier fehlt ein Komma oder die schließende Klammer. Ergänzen Sie es.</translation>
    </message>
    <message>
        <source>A value is missing here. Write one: a text in double quotes, a number, true, false, null, […], {…}.</source>
        <translation>Hier fehlt ein Wert. Schreiben Sie einen: Text in doppelten Anführungszeichen, eine Zahl, true, false, null, […], {…}.</translation>
    </message>
    <message>
        <source>The text that begins here has no end. Write a double quote after it.</source>
        <translation>Der Text, der hier beginnt, endet nicht. Schreiben Sie ein doppeltes Anführungszeichen dahinter.</translation>
    </message>
    <message>
        <source>A text contains a line break or a tab. Write \n or \t instead.</source>
        <translation>In einem Text steht ein Zeilenumbruch oder Tabulator. Schreiben Sie dafür \n oder \t.</translation>
    </message>
    <message>
        <source>A single backslash cannot be used here. Write it twice: \\</source>
        <translation>Ein einzelner umgekehrter Schrägstrich ist hier nicht möglich. Schreiben Sie ihn doppelt: \\</translation>
    </message>
    <message>
        <source>There is text after the end of the JSON. Remove it.</source>
        <translation>Hinter dem Ende des JSON steht noch Text. Entfernen Sie ihn.</translation>
    </message>
    <message>
        <source>This is not valid JSON. Compare it with the original arguments.</source>
        <translation>Das ist kein gültiges JSON. Vergleichen Sie es mit den ursprünglichen Argumenten.</translation>
    </message>
    <message>
        <source>{0} is not JSON. Write a number, or null.</source>
        <translation>{0} ist kein JSON. Schreiben Sie eine Zahl oder null.</translation>
    </message>
    <message>
        <source>The number {0} is too large. Write a smaller one, or a text.</source>
        <translation>Die Zahl {0} ist zu groß. Schreiben Sie eine kleinere oder einen Text.</translation>
    </message>
    <message>
        <source>A name is used twice. Remove one of the two.</source>
        <translation>Ein Name steht zweimal da. Entfernen Sie einen der beiden.</translation>
    </message>
</context>
<context>
    <name>JumpButton</name>
    <message>
        <source>Jump to latest</source>
        <translation>Zum Neuesten springen</translation>
    </message>
    <message>
        <source>{0} new</source>
        <translation>{0} neu</translation>
    </message>
</context>
<context>
    <name>LicencesPage</name>
    <message>
        <source>Components</source>
        <translation>Bestandteile</translation>
    </message>
    <message>
        <source>Text of the licence</source>
        <translation>Text der Lizenz</translation>
    </message>
    <message>
        <source>Licences</source>
        <translation>Lizenzen</translation>
    </message>
    <message>
        <source>The components of this program, and their licences.</source>
        <translation>Die Bestandteile dieses Programms und ihre Lizenzen.</translation>
    </message>
    <message>
        <source>Licence of {0}</source>
        <translation>Lizenz von {0}</translation>
    </message>
</context>
<context>
    <name>LocalModelSettings</name>
    <message>
        <source>Looking for model files on this computer…</source>
        <translation>Modelldateien auf diesem Computer werden gesucht…</translation>
    </message>
    <message>
        <source>No model files were found. Choose one whose name ends in .gguf, or get one with another program.</source>
        <translation>Es wurden keine Modelldateien gefunden. Wählen Sie eine, deren Name auf .gguf endet, oder laden Sie eine mit einem anderen Programm herunter.</translation>
    </message>
    <message>
        <source>Models are run by llama.cpp, which is not installed here. Install it with your package manager, “brew install llama.cpp” or “winget install llama.cpp”, or from github.com/ggml-org/llama.cpp. Then press “Look again”.</source>
        <translation>Modelle führt llama.cpp aus, das hier nicht installiert ist. Installieren Sie es mit Ihrer Paketverwaltung, mit „brew install llama.cpp“ oder „winget install llama.cpp“, oder von github.com/ggml-org/llama.cpp. Drücken Sie dann „Erneut suchen“.</translation>
    </message>
    <message>
        <source>Stop the model</source>
        <translation>Modell beenden</translation>
    </message>
    <message>
        <source>Choose a file…</source>
        <translation>Datei auswählen…</translation>
    </message>
    <message>
        <source>Look again</source>
        <translation>Erneut suchen</translation>
    </message>
    <message>
        <source>Run a model file on this computer: no key, no network, no cost.</source>
        <translation>Eine Modelldatei auf diesem Computer ausführen: ohne Schlüssel, ohne Netz, ohne Kosten.</translation>
    </message>
    <message>
        <source>Loading “{0}”: {1} in memory, the file has {2}.</source>
        <translation>„{0}“ wird geladen: {1} im Arbeitsspeicher, die Datei hat {2}.</translation>
    </message>
    <message>
        <source>“{0}” is running and uses {1} of memory.</source>
        <translation>„{0}“ läuft und belegt {1} Arbeitsspeicher.</translation>
    </message>
    <message>
        <source>Choose a model file</source>
        <translation>Modelldatei auswählen</translation>
    </message>
    <message>
        <source>Models (*.gguf)</source>
        <translation>Modelle (*.gguf)</translation>
    </message>
</context>
<context>
    <name>LocalRow</name>
    <message>
        <source>not running</source>
        <translation>läuft nicht</translation>
    </message>
    <message>
        <source>running, 1 model</source>
        <translation>läuft, 1 Modell</translation>
    </message>
    <message>
        <source>running, {0} models</source>
        <translation>läuft, {0} Modelle</translation>
    </message>
    <message>
        <source>Use {0}</source>
        <translation>{0} verwenden</translation>
    </message>
    <message>
        <source>Use</source>
        <translation>Verwenden</translation>
    </message>
</context>
<context>
    <name>LogPane</name>
    <message>
        <source>Log of {0}</source>
        <translation>Protokoll von {0}</translation>
    </message>
    <message>
        <source>Which lines are shown</source>
        <translation>Welche Zeilen gezeigt werden</translation>
    </message>
    <message>
        <source>Copy</source>
        <translation>Kopieren</translation>
    </message>
    <message>
        <source>Copy the log of {0}</source>
        <translation>Das Protokoll von {0} kopieren</translation>
    </message>
    <message>
        <source>The log is empty.</source>
        <translation>Das Protokoll ist leer.</translation>
    </message>
    <message>
        <source>The whole line</source>
        <translation>Die ganze Zeile</translation>
    </message>
    <message>
        <source>{0} lines copied</source>
        <translation>Kopierte Zeilen: {0}</translation>
    </message>
    <message>
        <source>All lines</source>
        <translation>Alle Zeilen</translation>
    </message>
    <message>
        <source>Without debugging</source>
        <translation>Ohne Debug-Meldungen</translation>
    </message>
    <message>
        <source>Warnings and errors</source>
        <translation>Warnungen und Fehler</translation>
    </message>
    <message>
        <source>Errors</source>
        <translation>Fehler</translation>
    </message>
    <message>
        <source>Only the program&apos;s own output</source>
        <translation>Nur eigene Ausgaben des Programms</translation>
    </message>
</context>
<context>
    <name>MainWindow</name>
    <message>
        <source>The model is still working.</source>
        <translation>Das Modell arbeitet noch.</translation>
    </message>
    <message>
        <source>Closing stops the model. The answer so far is kept.</source>
        <translation>Beim Schließen wird das Modell angehalten. Die bisherige Antwort bleibt erhalten.</translation>
    </message>
    <message>
        <source>Keep working</source>
        <translation>Weiterarbeiten</translation>
    </message>
    <message>
        <source>Stop and close</source>
        <translation>Anhalten und schließen</translation>
    </message>
    <message>
        <source>A tool call waits for your decision.</source>
        <translation>Ein Werkzeugaufruf wartet auf Ihre Entscheidung.</translation>
    </message>
    <message>
        <source>The call keeps waiting. You are asked again at the next start.</source>
        <translation>Der Aufruf wartet weiter. Beim nächsten Start werden Sie wieder gefragt.</translation>
    </message>
    <message>
        <source>Keep open</source>
        <translation>Offen lassen</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>Schließen</translation>
    </message>
    <message>
        <source>Close Desktop Agent?</source>
        <translation>Desktop Agent schließen?</translation>
    </message>
    <message>
        <source>{0} (not stored)</source>
        <translation>{0} (nicht gespeichert)</translation>
    </message>
</context>
<context>
    <name>McpCatalogControls</name>
    <message>
        <source>Insert from a server</source>
        <translation>Von einem Server einfügen</translation>
    </message>
    <message>
        <source>Insert from an MCP server</source>
        <translation>Von einem MCP-Server einfügen</translation>
    </message>
</context>
<context>
    <name>McpPresenter</name>
    <message>
        <source>Insert from a server</source>
        <translation>Von einem Server einfügen</translation>
    </message>
    <message>
        <source>MCP servers…</source>
        <translation>MCP-Server…</translation>
    </message>
</context>
<context>
    <name>McpServerCard</name>
    <message>
        <source>On</source>
        <translation>An</translation>
    </message>
    <message>
        <source>Test</source>
        <translation>Testen</translation>
    </message>
    <message>
        <source>Test {0}</source>
        <translation>{0} testen</translation>
    </message>
    <message>
        <source>Show tools</source>
        <translation>Werkzeuge anzeigen</translation>
    </message>
    <message>
        <source>Show the tools of {0}</source>
        <translation>Die Werkzeuge von {0} anzeigen</translation>
    </message>
    <message>
        <source>Show log</source>
        <translation>Protokoll anzeigen</translation>
    </message>
    <message>
        <source>Show the log of {0}</source>
        <translation>Das Protokoll von {0} anzeigen</translation>
    </message>
    <message>
        <source>Edit</source>
        <translation>Bearbeiten</translation>
    </message>
    <message>
        <source>Edit {0}</source>
        <translation>{0} bearbeiten</translation>
    </message>
    <message>
        <source>Remove “{0}”? Its secrets are deleted from the keyring too.</source>
        <translation>„{0}“ entfernen? Auch seine Geheimnisse werden aus dem Schlüsselbund gelöscht.</translation>
    </message>
    <message>
        <source>Remove</source>
        <translation>Entfernen</translation>
    </message>
    <message>
        <source>Remove {0}</source>
        <translation>{0} entfernen</translation>
    </message>
    <message>
        <source>Keep</source>
        <translation>Behalten</translation>
    </message>
    <message>
        <source>Keep {0}</source>
        <translation>{0} behalten</translation>
    </message>
    <message>
        <source>Really remove {0}</source>
        <translation>{0} wirklich entfernen</translation>
    </message>
    <message>
        <source>Starting the server and asking for its tools. If it is downloaded first, this takes up to a minute…</source>
        <translation>Der Server wird gestartet und nach seinen Werkzeugen gefragt. Muss er erst heruntergeladen werden, dauert das bis zu einer Minute…</translation>
    </message>
    <message>
        <source>Hide tools</source>
        <translation>Werkzeuge ausblenden</translation>
    </message>
    <message>
        <source>Hide log</source>
        <translation>Protokoll ausblenden</translation>
    </message>
    <message>
        <source>What it says about its tools is trusted</source>
        <translation>Seinen Angaben über seine Werkzeuge wird vertraut</translation>
    </message>
    <message>
        <source>Secret variables: {0}</source>
        <translation>Geheime Variablen: {0}</translation>
    </message>
    <message>
        <source>Headers: {0}</source>
        <translation>Kopfzeilen: {0}</translation>
    </message>
    <message>
        <source>MCP server {0}</source>
        <translation>MCP-Server {0}</translation>
    </message>
    <message>
        <source>Use {0}</source>
        <translation>{0} verwenden</translation>
    </message>
</context>
<context>
    <name>McpServerSettings</name>
    <message>
        <source>You can close this page and go back to Desktop Agent.</source>
        <translation>Sie können diese Seite schließen und zu Desktop Agent zurückkehren.</translation>
    </message>
    <message>
        <source>The sign-in was refused. You can close this page and go back to Desktop Agent.</source>
        <translation>Die Anmeldung wurde abgelehnt. Sie können diese Seite schließen und zu Desktop Agent zurückkehren.</translation>
    </message>
    <message>
        <source>This sign-in has ended.</source>
        <translation>Diese Anmeldung ist beendet.</translation>
    </message>
    <message>
        <source>This is not an answer to a sign-in.</source>
        <translation>Das ist keine Antwort auf eine Anmeldung.</translation>
    </message>
    <message>
        <source>There is nothing here.</source>
        <translation>Hier ist nichts.</translation>
    </message>
    <message>
        <source>en</source>
        <translation>de</translation>
    </message>
</context>
<context>
    <name>McpServersForm</name>
    <message>
        <source>No MCP server is set up yet. Add a program on this computer or an address on the web, or import the servers of another program.</source>
        <translation>Noch ist kein MCP-Server eingerichtet. Fügen Sie ein Programm auf diesem Computer oder eine Adresse im Web hinzu, oder importieren Sie die Server eines anderen Programms.</translation>
    </message>
    <message>
        <source>Add program…</source>
        <translation>Programm hinzufügen…</translation>
    </message>
    <message>
        <source>Add address…</source>
        <translation>Adresse hinzufügen…</translation>
    </message>
    <message>
        <source>Import…</source>
        <translation>Importieren…</translation>
    </message>
    <message>
        <source>MCP servers give the agent more tools than it has by itself: for your tickets, a database, a browser. They speak the Model Context Protocol (MCP).</source>
        <translation>MCP-Server geben dem Agenten mehr Werkzeuge, als er von sich aus hat: für Ihre Tickets, eine Datenbank, einen Browser. Sie sprechen das Model Context Protocol (MCP).</translation>
    </message>
</context>
<context>
    <name>MenuBar</name>
    <message>
        <source>Menu bar</source>
        <translation>Menüleiste</translation>
    </message>
    <message>
        <source>&amp;File</source>
        <translation>&amp;Datei</translation>
    </message>
    <message>
        <source>&amp;Edit</source>
        <translation>&amp;Bearbeiten</translation>
    </message>
    <message>
        <source>&amp;View</source>
        <translation>&amp;Ansicht</translation>
    </message>
    <message>
        <source>&amp;Conversation</source>
        <translation>&amp;Unterhaltung</translation>
    </message>
    <message>
        <source>&amp;Message</source>
        <translation>&amp;Nachricht</translation>
    </message>
    <message>
        <source>&amp;Help</source>
        <translation>&amp;Hilfe</translation>
    </message>
    <message>
        <source>More menus</source>
        <translation>Weitere Menüs</translation>
    </message>
    <message>
        <source>Go to conversation</source>
        <translation>Zur Unterhaltung</translation>
    </message>
</context>
<context>
    <name>MessageDeletion</name>
    <message>
        <source>Delete your message?</source>
        <translation>Ihre Nachricht löschen?</translation>
    </message>
    <message>
        <source>Delete this answer?</source>
        <translation>Diese Antwort löschen?</translation>
    </message>
    <message>
        <source>This cannot be undone.</source>
        <translation>Das lässt sich nicht rückgängig machen.</translation>
    </message>
    <message>
        <source>Files that tools changed stay as they are; these changes cannot be undone from here any more.</source>
        <translation>Dateien, die Werkzeuge geändert haben, bleiben, wie sie sind; diese Änderungen lassen sich von hier aus nicht mehr rückgängig machen.</translation>
    </message>
    <message>
        <source>Changes made by tools are not undone.</source>
        <translation>Änderungen von Werkzeugen werden nicht rückgängig gemacht.</translation>
    </message>
    <message>
        <source>It is deleted for good.</source>
        <translation>Sie wird endgültig gelöscht.</translation>
    </message>
    <message>
        <source>It is deleted for good, with the message after it on another branch.</source>
        <translation>Sie wird endgültig gelöscht, ebenso die Nachricht danach in einem anderen Zweig.</translation>
    </message>
    <message>
        <source>It is deleted for good, with the message after it.</source>
        <translation>Sie wird endgültig gelöscht, ebenso die Nachricht danach.</translation>
    </message>
    <message>
        <source>It is deleted for good, with {0} messages after it on other branches.</source>
        <translation>Sie wird endgültig gelöscht, ebenso {0} Nachrichten danach in anderen Zweigen.</translation>
    </message>
    <message>
        <source>It is deleted for good, with {0} messages after it, 1 of them on another branch.</source>
        <translation>Sie wird endgültig gelöscht, ebenso {0} Nachrichten danach, 1 davon in einem anderen Zweig.</translation>
    </message>
    <message>
        <source>It is deleted for good, with {0} messages after it, {1} of them on other branches.</source>
        <translation>Sie wird endgültig gelöscht, ebenso {0} Nachrichten danach, {1} davon in anderen Zweigen.</translation>
    </message>
    <message>
        <source>It is deleted for good, with {0} messages after it.</source>
        <translation>Sie wird endgültig gelöscht, ebenso {0} Nachrichten danach.</translation>
    </message>
</context>
<context>
    <name>MessageEditor</name>
    <message>
        <source>Message</source>
        <translation>Nachricht</translation>
    </message>
    <message>
        <source>Write a message</source>
        <translation>Nachricht schreiben</translation>
    </message>
</context>
<context>
    <name>MessageQueueView</name>
    <message>
        <source>Send now</source>
        <translation>Jetzt senden</translation>
    </message>
    <message>
        <source>Waiting messages: {0}</source>
        <translation>Wartende Nachrichten: {0}</translation>
    </message>
    <message>
        <source>Waiting messages</source>
        <translation>Wartende Nachrichten</translation>
    </message>
</context>
<context>
    <name>MirrorsField</name>
    <message>
        <source>Further addresses</source>
        <translation>Weitere Adressen</translation>
    </message>
    <message>
        <source>Other addresses of the same service, one per line. They are tried when the first does not answer, with the same key.</source>
        <translation>Weitere Adressen desselben Dienstes, eine je Zeile. Sie werden mit demselben Schlüssel versucht, wenn die erste nicht antwortet.</translation>
    </message>
</context>
<context>
    <name>ModeCard</name>
    <message>
        <source>Mode {0}</source>
        <translation>Modus {0}</translation>
    </message>
    <message>
        <source>Copy</source>
        <translation>Kopieren</translation>
    </message>
    <message>
        <source>Copy {0}</source>
        <translation>{0} kopieren</translation>
    </message>
    <message>
        <source>Edit {0}</source>
        <translation>{0} bearbeiten</translation>
    </message>
    <message>
        <source>Edit</source>
        <translation>Bearbeiten</translation>
    </message>
    <message>
        <source>Remove {0}</source>
        <translation>{0} entfernen</translation>
    </message>
    <message>
        <source>Remove</source>
        <translation>Entfernen</translation>
    </message>
    <message>
        <source>And {0} more rules</source>
        <translation>Weitere Regeln: {0}</translation>
    </message>
</context>
<context>
    <name>ModeEditor</name>
    <message>
        <source>Another mode has this name. Choose another one.</source>
        <translation>Ein anderer Modus heißt schon so. Wählen Sie einen anderen Namen.</translation>
    </message>
    <message>
        <source>A mode needs a name. Write one.</source>
        <translation>Ein Modus braucht einen Namen. Schreiben Sie einen.</translation>
    </message>
    <message>
        <source>A short name has small letters from a to z, digits and “-”, and begins with a letter.</source>
        <translation>Ein Kurzname hat Kleinbuchstaben von a bis z, Ziffern und „-“ und beginnt mit einem Buchstaben.</translation>
    </message>
    <message>
        <source>Another mode has this short name. Choose another one.</source>
        <translation>Ein anderer Modus hat diesen Kurznamen. Wählen Sie einen anderen.</translation>
    </message>
    <message>
        <source>The instructions have more than {0} characters. Shorten them.</source>
        <translation>Die Anweisungen haben mehr als {0} Zeichen. Kürzen Sie sie.</translation>
    </message>
    <message>
        <source>A rule is not finished. Add it, or cancel it.</source>
        <translation>Eine Regel ist noch nicht fertig. Fügen Sie sie hinzu, oder verwerfen Sie sie.</translation>
    </message>
    <message>
        <source>Name</source>
        <translation>Name</translation>
    </message>
    <message>
        <source>The agent and specialists call the mode by this name. It cannot be changed later.</source>
        <translation>Der Agent und Spezialisten nennen den Modus bei diesem Namen. Er lässt sich später nicht ändern.</translation>
    </message>
    <message>
        <source>Short name</source>
        <translation>Kurzname</translation>
    </message>
    <message>
        <source>Denied: the agent only reads</source>
        <translation>Abgelehnt: Der Agent liest nur</translation>
    </message>
    <message>
        <source>Asked about, one by one</source>
        <translation>Nach jedem wird einzeln gefragt</translation>
    </message>
    <message>
        <source>Files change without asking; the rest is asked about</source>
        <translation>Dateien werden ohne Nachfrage geändert; nach allem anderen wird gefragt</translation>
    </message>
    <message>
        <source>Calls that change something</source>
        <translation>Aufrufe, die etwas ändern</translation>
    </message>
    <message>
        <source>Nothing</source>
        <translation>Nichts</translation>
    </message>
    <message>
        <source>Added to the instructions while the mode is on.</source>
        <translation>Wird zu den Anweisungen hinzugefügt, solange der Modus gilt.</translation>
    </message>
    <message>
        <source>Instructions</source>
        <translation>Anweisungen</translation>
    </message>
    <message>
        <source>Deny overrides Ask, and Ask overrides Allow. Rules of the conversation and of every folder apply as well.</source>
        <translation>„Ablehnen“ geht vor „Fragen“, „Fragen“ vor „Erlauben“. Regeln der Unterhaltung und jedes Ordners gelten ebenfalls.</translation>
    </message>
    <message>
        <source>Rules</source>
        <translation>Regeln</translation>
    </message>
</context>
<context>
    <name>ModePicker</name>
    <message>
        <source>Mode</source>
        <translation>Modus</translation>
    </message>
    <message>
        <source>Mode: {0}</source>
        <translation>Modus: {0}</translation>
    </message>
    <message>
        <source>Default mode</source>
        <translation>Modus „Standard“</translation>
    </message>
    <message>
        <source>{0} → {1}?</source>
        <translation>{0} → {1}?</translation>
    </message>
    <message>
        <source>The agent asks for the mode “{0}”.</source>
        <translation>Der Agent bittet um den Modus „{0}“.</translation>
    </message>
    <message>
        <source>Change to “{0}” now</source>
        <translation>Jetzt zu „{0}“ wechseln</translation>
    </message>
    <message>
        <source>Keep “{0}”</source>
        <translation>„{0}“ behalten</translation>
    </message>
</context>
<context>
    <name>ModeRequestBar</name>
    <message>
        <source>The agent asks for another mode</source>
        <translation>Der Agent bittet um einen anderen Modus</translation>
    </message>
    <message>
        <source>The agent asks for the mode “{0}”. It changes at its next step unless you object.</source>
        <translation>Der Agent bittet um den Modus „{0}“. Er wechselt mit seinem nächsten Schritt, wenn Sie nicht widersprechen.</translation>
    </message>
    <message>
        <source>Change now</source>
        <translation>Jetzt wechseln</translation>
    </message>
    <message>
        <source>Keep “{0}”</source>
        <translation>„{0}“ behalten</translation>
    </message>
</context>
<context>
    <name>ModeSettings</name>
    <message>
        <source>Add mode…</source>
        <translation>Modus hinzufügen…</translation>
    </message>
    <message>
        <source>You have no mode of your own yet. Copy one of those above, or add one.</source>
        <translation>Sie haben noch keinen eigenen Modus. Kopieren Sie einen von oben, oder fügen Sie einen hinzu.</translation>
    </message>
    <message>
        <source>There can be {0} modes. Remove one first.</source>
        <translation>Es kann {0} Modi geben. Entfernen Sie erst einen.</translation>
    </message>
    <message>
        <source>{0} (copy)</source>
        <translation>{0} (Kopie)</translation>
    </message>
    <message>
        <source>The mode “{0}” is removed. Conversations that used it now ask you more often.</source>
        <translation>Der Modus „{0}“ wurde entfernt. Unterhaltungen, die ihn verwendeten, fragen jetzt öfter nach.</translation>
    </message>
    <message>
        <source>A mode says what the agent may do without asking you. Choose it below the message editor. Changes to a mode apply at once in every open conversation, to each call that has not started.</source>
        <translation>Ein Modus sagt, was der Agent ohne Nachfrage tun darf. Gewählt wird er unter dem Eingabefeld. Änderungen an einem Modus gelten sofort in jeder offenen Unterhaltung, für jeden Aufruf, der noch nicht begonnen hat.</translation>
    </message>
    <message>
        <source>Always there</source>
        <translation>Immer vorhanden</translation>
    </message>
    <message>
        <source>Your own</source>
        <translation>Eigene</translation>
    </message>
</context>
<context>
    <name>ModelChoice</name>
    <message>
        <source>{0} (not listed)</source>
        <translation>{0} (nicht in der Liste)</translation>
    </message>
    <message>
        <source>Model</source>
        <translation>Modell</translation>
    </message>
    <message>
        <source>Name of the model</source>
        <translation>Name des Modells</translation>
    </message>
    <message>
        <source>Name of the model, as its server calls it</source>
        <translation>Name des Modells, wie sein Server es nennt</translation>
    </message>
    <message>
        <source>Same as its caller</source>
        <translation>Wie beim Aufrufenden</translation>
    </message>
    <message>
        <source>Another model…</source>
        <translation>Anderes Modell…</translation>
    </message>
</context>
<context>
    <name>ModelPicker</name>
    <message>
        <source>Models</source>
        <translation>Modelle</translation>
    </message>
    <message>
        <source>Refresh models</source>
        <translation>Modelle neu laden</translation>
    </message>
    <message>
        <source>Connect a model…</source>
        <translation>Modell verbinden…</translation>
    </message>
    <message>
        <source>Run a model file…</source>
        <translation>Modelldatei ausführen…</translation>
    </message>
    <message>
        <source>Search models</source>
        <translation>Modelle suchen</translation>
    </message>
    <message>
        <source>Search, or type a model id</source>
        <translation>Suchen oder Modell-ID eingeben</translation>
    </message>
    <message>
        <source>Model</source>
        <translation>Modell</translation>
    </message>
    <message>
        <source>Choose a model</source>
        <translation>Modell auswählen</translation>
    </message>
</context>
<context>
    <name>ModelRows</name>
    <message>
        <source>No model is connected yet.</source>
        <translation>Es ist noch kein Modell verbunden.</translation>
    </message>
    <message>
        <source>Only the demo is connected yet.</source>
        <translation>Bisher ist nur die Demo verbunden.</translation>
    </message>
    <message>
        <source>Demo</source>
        <translation>Demo</translation>
    </message>
    <message>
        <source>Demo (offline)</source>
        <translation>Demo (offline)</translation>
    </message>
    <message>
        <source>No models</source>
        <translation>Keine Modelle</translation>
    </message>
    <message>
        <source>Use “{0}”</source>
        <translation>„{0}“ verwenden</translation>
    </message>
    <message>
        <source>pictures</source>
        <translation>Bilder</translation>
    </message>
    <message>
        <source>makes pictures</source>
        <translation>erzeugt Bilder</translation>
    </message>
    <message>
        <source>tools</source>
        <translation>Werkzeuge</translation>
    </message>
    <message>
        <source>reasoning</source>
        <translation>Nachdenken</translation>
    </message>
    <message>
        <source>retired {0}</source>
        <translation>eingestellt am {0}</translation>
    </message>
    <message>
        <source>retires {0}</source>
        <translation>wird am {0} eingestellt</translation>
    </message>
    <message>
        <source>Context window: {0} tokens</source>
        <translation>Kontextfenster: {0} Token</translation>
    </message>
    <message>
        <source>Price per million tokens: {0} in, {1} out</source>
        <translation>Preis je Million Token: {0} Eingabe, {1} Ausgabe</translation>
    </message>
</context>
<context>
    <name>ModelsField</name>
    <message>
        <source>Model, if the server lists none</source>
        <translation>Modell, falls keins gelistet</translation>
    </message>
</context>
<context>
    <name>Modes</name>
    <message>
        <source>Mode editor</source>
        <translation>Moduseditor</translation>
    </message>
    <message>
        <source>With any arguments</source>
        <translation>Mit beliebigen Argumenten</translation>
    </message>
    <message>
        <source>With files in the folder</source>
        <translation>Mit Dateien im Ordner</translation>
    </message>
    <message>
        <source>With the host</source>
        <translation>Mit dem Host</translation>
    </message>
    <message>
        <source>Commands that begin with</source>
        <translation>Befehle, die beginnen mit</translation>
    </message>
    <message>
        <source>Exactly the command</source>
        <translation>Genau der Befehl</translation>
    </message>
    <message>
        <source>Write the full path of the folder.</source>
        <translation>Schreiben Sie den vollständigen Pfad des Ordners.</translation>
    </message>
    <message>
        <source>Write the name of a host, such as example.org, or *.example.org for every host below it.</source>
        <translation>Schreiben Sie den Namen eines Hosts, etwa example.org, oder *.example.org für alle Hosts darunter.</translation>
    </message>
    <message>
        <source>A quotation mark has no end. Close it.</source>
        <translation>Ein Anführungszeichen hat kein Ende. Schließen Sie es.</translation>
    </message>
    <message>
        <source>Write the first words of the command, such as git status.</source>
        <translation>Schreiben Sie die ersten Wörter des Befehls, etwa git status.</translation>
    </message>
    <message>
        <source>Default</source>
        <translation>Standard</translation>
    </message>
    <message>
        <source>Plan</source>
        <translation>Planen</translation>
    </message>
    <message>
        <source>Accept edits</source>
        <translation>Änderungen annehmen</translation>
    </message>
    <message>
        <source>Nothing is changed</source>
        <translation>Nichts wird geändert</translation>
    </message>
    <message>
        <source>Asks before it changes something</source>
        <translation>Fragt, bevor er etwas ändert</translation>
    </message>
    <message>
        <source>Changes files without asking</source>
        <translation>Ändert Dateien ohne Nachfrage</translation>
    </message>
    <message>
        <source>{0}; its rules allow more</source>
        <translation>{0}; eigene Regeln erlauben mehr</translation>
    </message>
    <message>
        <source>{0}; its rules deny more or ask more often</source>
        <translation>{0}; eigene Regeln lehnen mehr ab oder fragen öfter nach</translation>
    </message>
    <message>
        <source>{0}; its rules allow some calls, and deny or ask about others</source>
        <translation>{0}; eigene Regeln erlauben manche Aufrufe und lehnen andere ab oder fragen danach</translation>
    </message>
</context>
<context>
    <name>NetworkView</name>
    <message>
        <source>Address</source>
        <translation>Adresse</translation>
    </message>
    <message>
        <source>Network request</source>
        <translation>Netzwerkanfrage</translation>
    </message>
</context>
<context>
    <name>OAuthClientFields</name>
    <message>
        <source>Client id, if you were given one</source>
        <translation>Client-ID, falls Sie eine bekommen haben</translation>
    </message>
    <message>
        <source>Client id</source>
        <translation>Client-ID</translation>
    </message>
    <message>
        <source>Client secret</source>
        <translation>Client-Geheimnis</translation>
    </message>
    <message>
        <source>Most servers need neither. Some accept only registered programs: the operator of such a server gives you both. The secret goes to the keyring.</source>
        <translation>Die meisten Server brauchen keines von beiden. Einige lassen nur angemeldete Programme zu: Der Betreiber eines solchen Servers gibt Ihnen beide. Das Geheimnis kommt in den Schlüsselbund.</translation>
    </message>
    <message>
        <source>Kept in the keyring</source>
        <translation>Im Schlüsselbund aufbewahrt</translation>
    </message>
    <message>
        <source>Client secret, if it has one</source>
        <translation>Client-Geheimnis, falls es eines gibt</translation>
    </message>
    <message>
        <source>Type here to replace it.</source>
        <translation>Zum Ersetzen hier eingeben.</translation>
    </message>
</context>
<context>
    <name>OfferRows</name>
    <message>
        <source>Starting…</source>
        <translation>Wird gestartet…</translation>
    </message>
    <message>
        <source>It offers no prompts and no resources.</source>
        <translation>Er bietet keine Prompts und keine Ressourcen an.</translation>
    </message>
    <message>
        <source>It offers no prompts.</source>
        <translation>Er bietet keine Prompts an.</translation>
    </message>
    <message>
        <source>It offers no resources.</source>
        <translation>Er bietet keine Ressourcen an.</translation>
    </message>
    <message>
        <source>needs details</source>
        <translation>braucht Angaben</translation>
    </message>
</context>
<context>
    <name>OffersPopup</name>
    <message>
        <source>From MCP servers</source>
        <translation>Von MCP-Servern</translation>
    </message>
    <message>
        <source>Ask the servers again</source>
        <translation>Die Server neu fragen</translation>
    </message>
    <message>
        <source>MCP servers…</source>
        <translation>MCP-Server…</translation>
    </message>
    <message>
        <source>Search prompts and resources</source>
        <translation>Prompts und Ressourcen suchen</translation>
    </message>
    <message>
        <source>Search prompts</source>
        <translation>Prompts suchen</translation>
    </message>
    <message>
        <source>Search resources</source>
        <translation>Ressourcen suchen</translation>
    </message>
</context>
<context>
    <name>OrganisePresenter</name>
    <message>
        <source>From the conversation “{0}”:</source>
        <translation>Aus der Unterhaltung „{0}“:</translation>
    </message>
    <message>
        <source>{0} (copy)</source>
        <translation>{0} (Kopie)</translation>
    </message>
    <message>
        <source>The link is copied.</source>
        <translation>Der Link ist kopiert.</translation>
    </message>
    <message>
        <source>Delete the folder “{0}”?</source>
        <translation>Den Ordner „{0}“ löschen?</translation>
    </message>
    <message>
        <source>Its conversations and folders move up one level. Its instructions are deleted.</source>
        <translation>Seine Unterhaltungen und Ordner rücken eine Ebene nach oben. Seine Anweisungen werden gelöscht.</translation>
    </message>
    <message>
        <source>Its conversations and folders move up one level. Nothing else is deleted.</source>
        <translation>Seine Unterhaltungen und Ordner rücken eine Ebene nach oben. Sonst wird nichts gelöscht.</translation>
    </message>
    <message>
        <source>Delete folder</source>
        <translation>Ordner löschen</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
</context>
<context>
    <name>PageFrame</name>
    <message>
        <source>From {0}</source>
        <translation>Aus {0}</translation>
    </message>
</context>
<context>
    <name>PalettePresenter</name>
    <message>
        <source>Messages</source>
        <translation>Nachrichten</translation>
    </message>
    <message>
        <source>Commands</source>
        <translation>Befehle</translation>
    </message>
    <message>
        <source>Settings</source>
        <translation>Einstellungen</translation>
    </message>
    <message>
        <source>Conversations</source>
        <translation>Unterhaltungen</translation>
    </message>
    <message>
        <source>Models</source>
        <translation>Modelle</translation>
    </message>
    <message>
        <source>{0}, setting</source>
        <translation>{0}, Einstellung</translation>
    </message>
</context>
<context>
    <name>Parameters</name>
    <message>
        <source>Own system prompt</source>
        <translation>Eigener Systemprompt</translation>
    </message>
    <message>
        <source>Temperature {0}</source>
        <translation>Temperatur {0}</translation>
    </message>
    <message>
        <source>Top-p {0}</source>
        <translation>Top-p {0}</translation>
    </message>
    <message>
        <source>At most {0} tokens</source>
        <translation>Höchstens {0} Token</translation>
    </message>
</context>
<context>
    <name>ParametersButton</name>
    <message>
        <source>Conversation settings</source>
        <translation>Einstellungen der Unterhaltung</translation>
    </message>
    <message>
        <source>{0} settings</source>
        <translation>{0} Einstellungen</translation>
    </message>
    <message>
        <source>Default</source>
        <translation>Standard</translation>
    </message>
</context>
<context>
    <name>PermissionDryRun</name>
    <message>
        <source>Tool</source>
        <translation>Werkzeug</translation>
    </message>
    <message>
        <source>Arguments as JSON</source>
        <translation>Argumente als JSON</translation>
    </message>
    <message>
        <source>Check</source>
        <translation>Prüfen</translation>
    </message>
    <message>
        <source>Choose a tool and write its arguments as JSON to see whether the call would run.</source>
        <translation>Wählen Sie ein Werkzeug, und schreiben Sie seine Argumente als JSON, um zu sehen, ob der Aufruf laufen würde.</translation>
    </message>
    <message>
        <source>Nothing is run.</source>
        <translation>Nichts wird ausgeführt.</translation>
    </message>
    <message>
        <source>Open a conversation with tools to try its rules.</source>
        <translation>Öffnen Sie eine Unterhaltung mit Werkzeugen, um ihre Regeln auszuprobieren.</translation>
    </message>
</context>
<context>
    <name>PictureView</name>
    <message>
        <source>Picture: {0}</source>
        <translation>Bild: {0}</translation>
    </message>
    <message>
        <source>Reading the picture…</source>
        <translation>Das Bild wird gelesen…</translation>
    </message>
    <message>
        <source>The picture {0}</source>
        <translation>Das Bild {0}</translation>
    </message>
    <message>
        <source>The picture cannot be shown: its file is damaged or of another kind.</source>
        <translation>Das Bild lässt sich nicht anzeigen: Seine Datei ist beschädigt oder von anderer Art.</translation>
    </message>
</context>
<context>
    <name>PictureViewer</name>
    <message>
        <source>Picture</source>
        <translation>Bild</translation>
    </message>
    <message>
        <source>Zoom</source>
        <translation>Zoom</translation>
    </message>
    <message>
        <source>Picture: {0}</source>
        <translation>Bild: {0}</translation>
    </message>
    <message>
        <source>{0} of {1}</source>
        <translation>{0} von {1}</translation>
    </message>
    <message>
        <source>Loading…</source>
        <translation>Wird geladen…</translation>
    </message>
    <message>
        <source>{0} × {1} pixels</source>
        <translation>{0} × {1} Pixel</translation>
    </message>
    <message>
        <source>This picture has {0} megapixels; more than {1} are not opened here. Save it, and open it in an image editor.</source>
        <translation>Dieses Bild hat {0} Megapixel; mehr als {1} werden hier nicht geöffnet. Speichern Sie es, und öffnen Sie es in einem Bildprogramm.</translation>
    </message>
    <message>
        <source>This picture cannot be read: its file is damaged or gone. Ask the model for it again, or attach it again.</source>
        <translation>Dieses Bild lässt sich nicht lesen: Seine Datei ist beschädigt oder fehlt. Bitten Sie das Modell erneut darum, oder hängen Sie es neu an.</translation>
    </message>
    <message>
        <source>This picture has {0} megapixels. To spare memory it is shown with {1}; save it and open it in an image editor to see all of them.</source>
        <translation>Dieses Bild hat {0} Megapixel. Um Speicher zu sparen, wird es mit {1} gezeigt; speichern Sie es, und öffnen Sie es in einem Bildprogramm, um alle zu sehen.</translation>
    </message>
    <message>
        <source>{0} %</source>
        <translation>{0} %</translation>
    </message>
    <message>
        <source>Copied</source>
        <translation>Kopiert</translation>
    </message>
    <message>
        <source>Previous picture</source>
        <translation>Vorheriges Bild</translation>
    </message>
    <message>
        <source>Next picture</source>
        <translation>Nächstes Bild</translation>
    </message>
    <message>
        <source>Zoom out</source>
        <translation>Verkleinern</translation>
    </message>
    <message>
        <source>Zoom in</source>
        <translation>Vergrößern</translation>
    </message>
    <message>
        <source>Fit to window</source>
        <translation>An das Fenster anpassen</translation>
    </message>
    <message>
        <source>Copy picture</source>
        <translation>Bild kopieren</translation>
    </message>
    <message>
        <source>Save picture as…</source>
        <translation>Bild speichern unter…</translation>
    </message>
    <message>
        <source>Actual size (1)</source>
        <translation>Originalgröße (1)</translation>
    </message>
    <message>
        <source>Actual size</source>
        <translation>Originalgröße</translation>
    </message>
</context>
<context>
    <name>Pictures</name>
    <message>
        <source>This model cannot see pictures. Choose another model, or remove them before you send.</source>
        <translation>Dieses Modell kann keine Bilder sehen. Wählen Sie ein anderes Modell, oder entfernen Sie sie vor dem Senden.</translation>
    </message>
    <message>
        <source>This model takes at most {0} pictures: the first of these are left out.</source>
        <translation>Dieses Modell nimmt höchstens {0} Bilder an: Die ersten davon werden weggelassen.</translation>
    </message>
    <message>
        <source>“{0}” is sent in another format: this model does not read {1}.</source>
        <translation>„{0}“ wird in einem anderen Format gesendet: Dieses Modell liest kein {1}.</translation>
    </message>
    <message>
        <source>“{0}” is made smaller: this model takes at most {1}.</source>
        <translation>„{0}“ wird verkleinert: Dieses Modell nimmt höchstens {1} an.</translation>
    </message>
    <message>
        <source>“{0}” is scaled down: this model sees at most {1} pixels a side.</source>
        <translation>„{0}“ wird verkleinert: Dieses Modell sieht höchstens {1} Pixel je Seite.</translation>
    </message>
    <message>
        <source>{0} pictures are scaled down: this model sees at most {1} pixels a side.</source>
        <translation>{0} Bilder werden verkleinert: Dieses Modell sieht höchstens {1} Pixel je Seite.</translation>
    </message>
</context>
<context>
    <name>PortalKeys</name>
    <message>
        <source>Ask a quick question</source>
        <translation>Eine schnelle Frage stellen</translation>
    </message>
</context>
<context>
    <name>Preferences</name>
    <message>
        <source>Press keys</source>
        <translation>Tasten drücken</translation>
    </message>
    <message>
        <source>Browse…</source>
        <translation>Durchsuchen…</translation>
    </message>
    <message>
        <source>System font</source>
        <translation>Systemschrift</translation>
    </message>
    <message>
        <source>{0} (not installed)</source>
        <translation>{0} (nicht installiert)</translation>
    </message>
    <message>
        <source>{0} alone is needed for typing. Combine it with Ctrl or Alt.</source>
        <translation>{0} allein wird zum Tippen gebraucht. Verwenden Sie es mit Strg oder Alt.</translation>
    </message>
    <message>
        <source>This is not a whole number above {0}. Write one such as {1}, or leave it empty.</source>
        <translation>Das ist keine ganze Zahl über {0}. Schreiben Sie eine wie {1}, oder lassen Sie das Feld leer.</translation>
    </message>
    <message>
        <source>This is not a number from {0} to {1}. Write one such as {2}, or leave it empty.</source>
        <translation>Das ist keine Zahl von {0} bis {1}. Schreiben Sie eine wie {2}, oder lassen Sie das Feld leer.</translation>
    </message>
    <message>
        <source>Appearance</source>
        <translation>Aussehen</translation>
    </message>
    <message>
        <source>Language</source>
        <translation>Sprache</translation>
    </message>
    <message>
        <source>Language of the window, from the next start on. Models answer in the language that you write in.</source>
        <translation>Sprache des Fensters; sie gilt ab dem nächsten Start. Modelle antworten in der Sprache, in der Sie schreiben.</translation>
    </message>
    <message>
        <source>System</source>
        <translation>System</translation>
    </message>
    <message>
        <source>Theme</source>
        <translation>Farbschema</translation>
    </message>
    <message>
        <source>Light, dark, or whatever the system uses.</source>
        <translation>Hell, dunkel oder wie das System.</translation>
    </message>
    <message>
        <source>Light</source>
        <translation>Hell</translation>
    </message>
    <message>
        <source>Dark</source>
        <translation>Dunkel</translation>
    </message>
    <message>
        <source>Zoom</source>
        <translation>Zoom</translation>
    </message>
    <message>
        <source>Size of everything in the window, in percent.</source>
        <translation>Größe von allem im Fenster, in Prozent.</translation>
    </message>
    <message>
        <source>Font</source>
        <translation>Schrift</translation>
    </message>
    <message>
        <source>Font of the text in conversations. Code has its own font.</source>
        <translation>Schrift der Texte in Unterhaltungen. Code behält seine eigene.</translation>
    </message>
    <message>
        <source>Text size</source>
        <translation>Textgröße</translation>
    </message>
    <message>
        <source>Text size in conversations, in points at 100 % zoom.</source>
        <translation>Textgröße in Unterhaltungen, in Punkt bei 100 % Zoom.</translation>
    </message>
    <message>
        <source>pt</source>
        <translation>pt</translation>
    </message>
    <message>
        <source>Line width</source>
        <translation>Zeilenbreite</translation>
    </message>
    <message>
        <source>How wide the lines of a conversation may get. Full takes the whole window.</source>
        <translation>Wie breit die Zeilen einer Unterhaltung werden dürfen. „Voll“ nimmt das ganze Fenster ein.</translation>
    </message>
    <message>
        <source>Narrow</source>
        <translation>Schmal</translation>
    </message>
    <message>
        <source>Medium</source>
        <translation>Mittel</translation>
    </message>
    <message>
        <source>Wide</source>
        <translation>Breit</translation>
    </message>
    <message>
        <source>Full</source>
        <translation>Voll</translation>
    </message>
    <message>
        <source>Density</source>
        <translation>Dichte</translation>
    </message>
    <message>
        <source>Space between the lines and messages of a conversation.</source>
        <translation>Platz zwischen den Zeilen und Nachrichten einer Unterhaltung.</translation>
    </message>
    <message>
        <source>Comfortable</source>
        <translation>Luftig</translation>
    </message>
    <message>
        <source>Compact</source>
        <translation>Kompakt</translation>
    </message>
    <message>
        <source>Menu bar</source>
        <translation>Menüleiste</translation>
    </message>
    <message>
        <source>Always shown. Otherwise Alt or F10 shows it; on a Mac it is at the top of the screen.</source>
        <translation>Immer sichtbar. Sonst zeigen Alt oder F10 sie; auf einem Mac steht sie oben am Bildschirm.</translation>
    </message>
    <message>
        <source>Chat</source>
        <translation>Chat</translation>
    </message>
    <message>
        <source>Enter sends</source>
        <translation>Enter sendet</translation>
    </message>
    <message>
        <source>Otherwise Ctrl+Enter sends and Enter makes a new line.</source>
        <translation>Sonst sendet Strg+Enter, und Enter beginnt eine neue Zeile.</translation>
    </message>
    <message>
        <source>Notifications</source>
        <translation>Benachrichtigungen</translation>
    </message>
    <message>
        <source>Shows a desktop notification when an answer is done or a call waits, while the window is not in front.</source>
        <translation>Meldet auf dem Desktop, dass eine Antwort fertig ist oder ein Aufruf wartet, solange das Fenster nicht vorn ist.</translation>
    </message>
    <message>
        <source>Close to the tray</source>
        <translation>In den Infobereich schließen</translation>
    </message>
    <message>
        <source>Closing the window keeps the program running, with its icon in the tray. Quit ends it.</source>
        <translation>Nach dem Schließen des Fensters läuft das Programm mit seinem Symbol im Infobereich weiter. „Beenden“ beendet es.</translation>
    </message>
    <message>
        <source>Start with the computer</source>
        <translation>Mit dem Computer starten</translation>
    </message>
    <message>
        <source>Starts in the tray, or as a minimised window if there is no tray.</source>
        <translation>Startet im Infobereich, oder als minimiertes Fenster, wenn es keinen gibt.</translation>
    </message>
    <message>
        <source>Keys for a quick question</source>
        <translation>Tasten für eine schnelle Frage</translation>
    </message>
    <message>
        <source>Open its small window while another program is in front. Press the keys here; Backspace removes them.</source>
        <translation>Öffnen ihr kleines Fenster, während ein anderes Programm vorn ist. Drücken Sie die Tasten hier; die Rücktaste entfernt sie.</translation>
    </message>
    <message>
        <source>Tool rounds</source>
        <translation>Werkzeugrunden</translation>
    </message>
    <message>
        <source>How often the model may call tools before it must stop.</source>
        <translation>Wie oft das Modell Werkzeuge aufrufen darf, bevor es anhalten muss.</translation>
    </message>
    <message>
        <source>Titles of conversations</source>
        <translation>Titel von Unterhaltungen</translation>
    </message>
    <message>
        <source>Model: a model writes the title after the first answer, at the cost of a small request. Local: the title is the first words.</source>
        <translation>Modell: Ein Modell schreibt den Titel nach der ersten Antwort, zum Preis einer kleinen Anfrage. Lokal: Der Titel sind die ersten Wörter.</translation>
    </message>
    <message>
        <source>Model</source>
        <translation>Modell</translation>
    </message>
    <message>
        <source>Local</source>
        <translation>Lokal</translation>
    </message>
    <message>
        <source>Model for titles</source>
        <translation>Modell für Titel</translation>
    </message>
    <message>
        <source>Name of the model. It is used if the conversation&apos;s server has it. If this is empty, the conversation&apos;s own model is used.</source>
        <translation>Name des Modells. Es wird verwendet, wenn der Server der Unterhaltung es hat. Bleibt das Feld leer, gilt das Modell der Unterhaltung.</translation>
    </message>
    <message>
        <source>Instructions</source>
        <translation>Anweisungen</translation>
    </message>
    <message>
        <source>System prompt of every conversation that has none of its own.</source>
        <translation>Systemprompt jeder Unterhaltung, die keinen eigenen hat.</translation>
    </message>
    <message>
        <source>Spelling</source>
        <translation>Rechtschreibung</translation>
    </message>
    <message>
        <source>Check spelling</source>
        <translation>Rechtschreibung prüfen</translation>
    </message>
    <message>
        <source>Underlines misspelled words in your message. The context menu of a word offers corrections.</source>
        <translation>Unterstreicht falsch geschriebene Wörter in Ihrer Nachricht. Das Kontextmenü eines Wortes bietet Korrekturen an.</translation>
    </message>
    <message>
        <source>Languages of your messages</source>
        <translation>Sprachen Ihrer Nachrichten</translation>
    </message>
    <message>
        <source>A word is right if it is right in one of these languages. If you choose none, the language of your system is used.</source>
        <translation>Ein Wort ist richtig, wenn es in einer dieser Sprachen richtig ist. Wählen Sie keine, gilt die Sprache Ihres Systems.</translation>
    </message>
    <message>
        <source>Your own words</source>
        <translation>Ihre eigenen Wörter</translation>
    </message>
    <message>
        <source>Words that you added to the dictionary, separated by spaces or line breaks.</source>
        <translation>Wörter, die Sie zum Wörterbuch hinzugefügt haben, durch Leerzeichen oder Zeilenumbrüche getrennt.</translation>
    </message>
    <message>
        <source>Models</source>
        <translation>Modelle</translation>
    </message>
    <message>
        <source>Reasoning of new conversations</source>
        <translation>Nachdenken in neuen Unterhaltungen</translation>
    </message>
    <message>
        <source>How hard a model reasons before it answers. Default leaves it to the model.</source>
        <translation>Wie gründlich ein Modell nachdenkt, bevor es antwortet. „Standard“ überlässt es dem Modell.</translation>
    </message>
    <message>
        <source>Default</source>
        <translation>Standard</translation>
    </message>
    <message>
        <source>Off</source>
        <translation>Aus</translation>
    </message>
    <message>
        <source>Low</source>
        <translation>Niedrig</translation>
    </message>
    <message>
        <source>High</source>
        <translation>Hoch</translation>
    </message>
    <message>
        <source>Show summaries of reasoning</source>
        <translation>Zusammenfassungen des Nachdenkens anzeigen</translation>
    </message>
    <message>
        <source>Asks for summaries if a server sends none by itself. Some servers then answer a little later.</source>
        <translation>Bittet um Zusammenfassungen, wenn ein Server von sich aus keine sendet. Manche Server antworten dann etwas später.</translation>
    </message>
    <message>
        <source>Prompt caching</source>
        <translation>Prompt-Caching</translation>
    </message>
    <message>
        <source>Servers may keep the conversation for a while, so that the next question costs less.</source>
        <translation>Server dürfen die Unterhaltung eine Weile aufbewahren, damit die nächste Frage weniger kostet.</translation>
    </message>
    <message>
        <source>Cache lifetime</source>
        <translation>Lebensdauer des Caches</translation>
    </message>
    <message>
        <source>Short is a few minutes. Long is about an hour; writing to the cache then costs more.</source>
        <translation>„Kurz“ sind einige Minuten. „Lang“ ist etwa eine Stunde; das Schreiben in den Cache kostet dann mehr.</translation>
    </message>
    <message>
        <source>Short</source>
        <translation>Kurz</translation>
    </message>
    <message>
        <source>Long</source>
        <translation>Lang</translation>
    </message>
    <message>
        <source>Network</source>
        <translation>Netzwerk</translation>
    </message>
    <message>
        <source>Connection</source>
        <translation>Verbindung</translation>
    </message>
    <message>
        <source>How long to wait for a connection.</source>
        <translation>Wie lange auf eine Verbindung gewartet wird.</translation>
    </message>
    <message>
        <source>s</source>
        <translation>s</translation>
    </message>
    <message>
        <source>Beginning of an answer</source>
        <translation>Beginn einer Antwort</translation>
    </message>
    <message>
        <source>How long a server may take to begin its answer. Automatic (0) is 120 seconds, or 900 where the server is on this computer or in a private network, or the model reasons.</source>
        <translation>Wie lange ein Server bis zum Beginn seiner Antwort brauchen darf. Automatisch (0) sind 120 Sekunden, oder 900, wenn der Server auf diesem Computer oder in einem privaten Netz steht oder das Modell nachdenkt.</translation>
    </message>
    <message>
        <source>Automatic</source>
        <translation>Automatisch</translation>
    </message>
    <message>
        <source>First words</source>
        <translation>Erste Wörter</translation>
    </message>
    <message>
        <source>The longest silence between the beginning of an answer and its first words. Automatic (0) is 300 seconds, or 900 in the same cases.</source>
        <translation>Die längste Stille zwischen dem Beginn einer Antwort und ihren ersten Wörtern. Automatisch (0) sind 300 Sekunden, oder 900 in denselben Fällen.</translation>
    </message>
    <message>
        <source>Silence</source>
        <translation>Stille</translation>
    </message>
    <message>
        <source>The longest silence in an answer after its first words.</source>
        <translation>Die längste Stille in einer Antwort nach ihren ersten Wörtern.</translation>
    </message>
    <message>
        <source>Private hosts</source>
        <translation>Private Hosts</translation>
    </message>
    <message>
        <source>Hosts on this computer or in a private network whose pages the model may ask for, and which commands may reach by a public name, separated by spaces. Others are refused.</source>
        <translation>Hosts auf diesem Computer oder in einem privaten Netz, nach deren Seiten das Modell fragen darf und die Befehle unter einem öffentlichen Namen erreichen dürfen, durch Leerzeichen getrennt. Andere werden abgelehnt.</translation>
    </message>
    <message>
        <source>Check for new versions</source>
        <translation>Nach neuen Versionen suchen</translation>
    </message>
    <message>
        <source>Asks once a day whether there is a newer version, and says so. Nothing is downloaded.</source>
        <translation>Fragt einmal am Tag, ob es eine neuere Version gibt, und sagt es. Nichts wird heruntergeladen.</translation>
    </message>
    <message>
        <source>Providers</source>
        <translation>Anbieter</translation>
    </message>
    <message>
        <source>Server</source>
        <translation>Server</translation>
    </message>
    <message>
        <source>The server in use.</source>
        <translation>Der verwendete Server.</translation>
    </message>
    <message>
        <source>The model in use.</source>
        <translation>Das verwendete Modell.</translation>
    </message>
    <message>
        <source>Unload after</source>
        <translation>Entladen nach</translation>
    </message>
    <message>
        <source>A model that is not used for this long is removed from memory. The next message loads it again.</source>
        <translation>Ein Modell, das so lange nicht benutzt wird, wird aus dem Arbeitsspeicher entfernt. Die nächste Nachricht lädt es wieder.</translation>
    </message>
    <message>
        <source>min</source>
        <translation>min</translation>
    </message>
    <message>
        <source>Never</source>
        <translation>Nie</translation>
    </message>
    <message>
        <source>Context</source>
        <translation>Kontext</translation>
    </message>
    <message>
        <source>How many tokens a model file can read at once. More needs more memory. The model&apos;s own limit applies too.</source>
        <translation>Wie viele Token eine Modelldatei auf einmal lesen kann. Mehr braucht mehr Arbeitsspeicher. Das Limit des Modells selbst gilt auch.</translation>
    </message>
    <message>
        <source>tokens</source>
        <translation>Token</translation>
    </message>
    <message>
        <source>Modes</source>
        <translation>Modi</translation>
    </message>
    <message>
        <source>Specialists</source>
        <translation>Spezialisten</translation>
    </message>
    <message>
        <source>Mcp</source>
        <translation>MCP</translation>
    </message>
    <message>
        <source>Shortcuts</source>
        <translation>Tastenkürzel</translation>
    </message>
    <message>
        <source>Keyboard shortcuts</source>
        <translation>Tastenkürzel</translation>
    </message>
    <message>
        <source>Keys by the name of the action; empty for no keys.</source>
        <translation>Tasten nach dem Namen der Aktion; leer für keine Tasten.</translation>
    </message>
    <message>
        <source>Storage</source>
        <translation>Speicher</translation>
    </message>
    <message>
        <source>Automatic backups</source>
        <translation>Automatische Sicherungen</translation>
    </message>
    <message>
        <source>Written when the program is idle, if there are new messages. Each picture is stored only once.</source>
        <translation>Werden geschrieben, wenn das Programm nichts zu tun hat und es neue Nachrichten gibt. Jedes Bild wird nur einmal gespeichert.</translation>
    </message>
    <message>
        <source>Daily</source>
        <translation>Täglich</translation>
    </message>
    <message>
        <source>Weekly</source>
        <translation>Wöchentlich</translation>
    </message>
    <message>
        <source>Automatic backups to keep</source>
        <translation>Aufbewahrte automatische Sicherungen</translation>
    </message>
    <message>
        <source>Older automatic backups are deleted. Backups that you made yourself stay.</source>
        <translation>Ältere automatische Sicherungen werden gelöscht. Selbst angelegte bleiben.</translation>
    </message>
    <message>
        <source>Folder for backups</source>
        <translation>Ordner für Sicherungen</translation>
    </message>
    <message>
        <source>Backups on another disk survive if this disk fails. If this is empty, they are in the folder “backups” in the data folder.</source>
        <translation>Sicherungen auf einem anderen Datenträger überstehen einen Ausfall von diesem. Bleibt das Feld leer, gilt der Ordner „backups“ im Datenordner.</translation>
    </message>
    <message>
        <source>Usage</source>
        <translation>Verbrauch</translation>
    </message>
    <message>
        <source>Dollars for a day</source>
        <translation>Dollar pro Tag</translation>
    </message>
    <message>
        <source>US dollars. At 80 % you are warned; at 100 % no model is asked any more.</source>
        <translation>US-Dollar. Bei 80 % werden Sie gewarnt; bei 100 % wird kein Modell mehr gefragt.</translation>
    </message>
    <message>
        <source>No budget</source>
        <translation>Kein Budget</translation>
    </message>
    <message>
        <source>Dollars for a month</source>
        <translation>Dollar pro Monat</translation>
    </message>
    <message>
        <source>US dollars from the first of the month on.</source>
        <translation>US-Dollar ab dem Ersten des Monats.</translation>
    </message>
    <message>
        <source>Tokens for a day</source>
        <translation>Token pro Tag</translation>
    </message>
    <message>
        <source>Input and output together. This budget also works for models without a price.</source>
        <translation>Eingabe und Ausgabe zusammen. Dieses Budget gilt auch für Modelle ohne Preis.</translation>
    </message>
    <message>
        <source>Tokens for a month</source>
        <translation>Token pro Monat</translation>
    </message>
    <message>
        <source>From the first of the month on.</source>
        <translation>Ab dem Ersten des Monats.</translation>
    </message>
    <message>
        <source>Histories</source>
        <translation>Verläufe</translation>
    </message>
    <message>
        <source>Offer programs</source>
        <translation>Auf Programme hinweisen</translation>
    </message>
    <message>
        <source>Asks once when conversations of another program are found.</source>
        <translation>Fragt einmal, wenn Unterhaltungen eines anderen Programms gefunden werden.</translation>
    </message>
    <message>
        <source>Temperature</source>
        <translation>Temperatur</translation>
    </message>
    <message>
        <source>From 0, the most predictable, to 2, the most varied.</source>
        <translation>Von 0, am vorhersehbarsten, bis 2, am abwechslungsreichsten.</translation>
    </message>
    <message>
        <source>The server&apos;s default</source>
        <translation>Vorgabe des Servers</translation>
    </message>
    <message>
        <source>Top-p</source>
        <translation>Top-p</translation>
    </message>
    <message>
        <source>Only the likeliest words that together reach this share, from 0 to 1.</source>
        <translation>Nur die wahrscheinlichsten Wörter, die zusammen diesen Anteil erreichen, von 0 bis 1.</translation>
    </message>
    <message>
        <source>Maximum tokens</source>
        <translation>Höchstzahl an Token</translation>
    </message>
    <message>
        <source>The longest answer. One that reaches it is cut, and can be continued.</source>
        <translation>Die längste Antwort. Eine, die das erreicht, wird abgeschnitten und lässt sich fortsetzen.</translation>
    </message>
    <message>
        <source>System prompt</source>
        <translation>Systemprompt</translation>
    </message>
    <message>
        <source>Sent to the model before everything else. If this is empty, the instructions in the settings are used.</source>
        <translation>Wird dem Modell vor allem anderen gesendet. Bleibt das Feld leer, gelten die Anweisungen aus den Einstellungen.</translation>
    </message>
</context>
<context>
    <name>PreviewView</name>
    <message>
        <source>Updating the preview for the edited arguments…</source>
        <translation>Die Vorschau für die geänderten Argumente wird erneuert…</translation>
    </message>
    <message>
        <source>The edited arguments cannot be used yet; this is the last preview.</source>
        <translation>Die geänderten Argumente lassen sich noch nicht verwenden; das ist die letzte Vorschau.</translation>
    </message>
</context>
<context>
    <name>PriceSettings</name>
    <message>
        <source>Filter by server or model</source>
        <translation>Nach Server oder Modell filtern</translation>
    </message>
    <message>
        <source>Models are listed here when a server is connected.</source>
        <translation>Modelle stehen hier, sobald ein Server verbunden ist.</translation>
    </message>
    <message>
        <source>Reset</source>
        <translation>Zurücksetzen</translation>
    </message>
    <message>
        <source>Reset to the original price</source>
        <translation>Auf den ursprünglichen Preis zurücksetzen</translation>
    </message>
    <message>
        <source>Filter prices</source>
        <translation>Preise filtern</translation>
    </message>
    <message>
        <source>Prices</source>
        <translation>Preise</translation>
    </message>
    <message>
        <source>US dollars per million tokens. Costs are calculated with these prices. Your changes are shown in bold and kept in “models.toml” in the data folder.</source>
        <translation>US-Dollar je Million Token. Mit diesen Preisen werden Kosten berechnet. Ihre Änderungen sind fett gezeigt und stehen in „models.toml“ im Datenordner.</translation>
    </message>
</context>
<context>
    <name>PriceTableModel</name>
    <message>
        <source>Server</source>
        <translation>Server</translation>
    </message>
    <message>
        <source>Model</source>
        <translation>Modell</translation>
    </message>
    <message>
        <source>In</source>
        <translation>Eingabe</translation>
    </message>
    <message>
        <source>Out</source>
        <translation>Ausgabe</translation>
    </message>
    <message>
        <source>Cache read</source>
        <translation>Cache lesen</translation>
    </message>
    <message>
        <source>Cache write</source>
        <translation>Cache schreiben</translation>
    </message>
    <message>
        <source>not known</source>
        <translation>nicht bekannt</translation>
    </message>
    <message>
        <source>{0}: {1}, changed by you</source>
        <translation>{0}: {1}, von Ihnen geändert</translation>
    </message>
</context>
<context>
    <name>PromptArgumentsDialog</name>
    <message>
        <source>Insert</source>
        <translation>Einfügen</translation>
    </message>
    <message>
        <source>Still needed: {0}</source>
        <translation>Fehlt noch: {0}</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
</context>
<context>
    <name>PromptEdit</name>
    <message>
        <source>Editing an earlier message</source>
        <translation>Eine frühere Nachricht wird bearbeitet</translation>
    </message>
    <message>
        <source>Cancel editing</source>
        <translation>Bearbeiten abbrechen</translation>
    </message>
</context>
<context>
    <name>ProviderSettings</name>
    <message>
        <source>No server is connected yet.</source>
        <translation>Es ist noch kein Server verbunden.</translation>
    </message>
    <message>
        <source>Connect a model…</source>
        <translation>Modell verbinden…</translation>
    </message>
    <message>
        <source>Run a model file…</source>
        <translation>Modelldatei ausführen…</translation>
    </message>
    <message>
        <source>Keys are kept in your system&apos;s keyring ({0}).</source>
        <translation>Schlüssel liegen im Schlüsselbund Ihres Systems ({0}).</translation>
    </message>
    <message>
        <source>A key can be held in memory until the program is closed.</source>
        <translation>Ein Schlüssel kann bis zum Ende des Programms im Arbeitsspeicher bleiben.</translation>
    </message>
</context>
<context>
    <name>QuestionCard</name>
    <message>
        <source>Answer</source>
        <translation>Antworten</translation>
    </message>
    <message>
        <source>Skip</source>
        <translation>Überspringen</translation>
    </message>
    <message>
        <source>The agent asks: {0}</source>
        <translation>Der Agent fragt: {0}</translation>
    </message>
    <message>
        <source>The agent asks (1 more waits)</source>
        <translation>Der Agent fragt (1 weitere wartet)</translation>
    </message>
    <message>
        <source>The agent asks</source>
        <translation>Der Agent fragt</translation>
    </message>
    <message numerus="yes">
        <source>The agent asks (%n more wait)</source>
        <translation>
            <numerusform>Der Agent fragt (%n weitere wartet)</numerusform>
            <numerusform>Der Agent fragt (%n weitere warten)</numerusform>
        </translation>
    </message>
    <message>
        <source>To answer with the keyboard, press {0}.</source>
        <translation>Um mit der Tastatur zu antworten, drücken Sie {0}.</translation>
    </message>
    <message>
        <source>Press a number to choose, Enter to answer.</source>
        <translation>Eine Zahl wählt aus, Enter antwortet.</translation>
    </message>
    <message>
        <source>Press Enter to answer.</source>
        <translation>Enter antwortet.</translation>
    </message>
    <message>
        <source>Question of the agent</source>
        <translation>Frage des Agenten</translation>
    </message>
    <message>
        <source>The agent goes on without an answer.</source>
        <translation>Der Agent macht ohne Antwort weiter.</translation>
    </message>
</context>
<context>
    <name>QueuedMessageControls</name>
    <message>
        <source>Send earlier</source>
        <translation>Früher senden</translation>
    </message>
    <message>
        <source>Send later</source>
        <translation>Später senden</translation>
    </message>
    <message>
        <source>Edit</source>
        <translation>Bearbeiten</translation>
    </message>
    <message>
        <source>Remove</source>
        <translation>Entfernen</translation>
    </message>
    <message>
        <source>Change this message</source>
        <translation>Diese Nachricht ändern</translation>
    </message>
    <message>
        <source>Sent: {0}. Press to change it to: {1}</source>
        <translation>Gesendet: {0}. Drücken ändert es zu: {1}</translation>
    </message>
    <message>
        <source>Change to: {0}</source>
        <translation>Ändern zu: {0}</translation>
    </message>
    <message>
        <source>Pictures: {0}</source>
        <translation>Bilder: {0}</translation>
    </message>
    <message>
        <source>Soon</source>
        <translation>Bald</translation>
    </message>
    <message>
        <source>When done</source>
        <translation>Am Ende</translation>
    </message>
    <message>
        <source>As soon as possible</source>
        <translation>So bald wie möglich</translation>
    </message>
    <message>
        <source>When the agent is done</source>
        <translation>Wenn der Agent fertig ist</translation>
    </message>
</context>
<context>
    <name>QueuedMessageRow</name>
    <message>
        <source>Only pictures</source>
        <translation>Nur Bilder</translation>
    </message>
    <message>
        <source>Waiting message: {0}</source>
        <translation>Wartende Nachricht: {0}</translation>
    </message>
    <message>
        <source>Text of the waiting message</source>
        <translation>Text der wartenden Nachricht</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>Save</source>
        <translation>Speichern</translation>
    </message>
</context>
<context>
    <name>QuickAsk</name>
    <message>
        <source>Quick question</source>
        <translation>Schnelle Frage</translation>
    </message>
    <message>
        <source>Attach the clipboard</source>
        <translation>Zwischenablage anhängen</translation>
    </message>
    <message>
        <source>Attach a screenshot</source>
        <translation>Bildschirmfoto anhängen</translation>
    </message>
    <message>
        <source>Screenshot</source>
        <translation>Bildschirmfoto</translation>
    </message>
</context>
<context>
    <name>QuickAskKeys</name>
    <message>
        <source>Your desktop calls these keys {0}.</source>
        <translation>Ihr Desktop nennt diese Tasten {0}.</translation>
    </message>
</context>
<context>
    <name>ReasonNote</name>
    <message>
        <source>Outside content from: {0}</source>
        <translation>Inhalte von: {0}</translation>
    </message>
    <message>
        <source>Trust {0} in this conversation</source>
        <translation>{0} in dieser Unterhaltung vertrauen</translation>
    </message>
    <message>
        <source>these sources</source>
        <translation>diesen Quellen</translation>
    </message>
</context>
<context>
    <name>Reasoning</name>
    <message>
        <source>Default</source>
        <translation>Standard</translation>
    </message>
    <message>
        <source>Off</source>
        <translation>Aus</translation>
    </message>
    <message>
        <source>Between tools</source>
        <translation>Zwischen Werkzeugen</translation>
    </message>
    <message>
        <source>Adaptive</source>
        <translation>Anpassend</translation>
    </message>
    <message>
        <source>Up to {0} tokens</source>
        <translation>Bis zu {0} Token</translation>
    </message>
    <message>
        <source>Minimal</source>
        <translation>Minimal</translation>
    </message>
    <message>
        <source>Low</source>
        <translation>Niedrig</translation>
    </message>
    <message>
        <source>Medium</source>
        <translation>Mittel</translation>
    </message>
    <message>
        <source>High</source>
        <translation>Hoch</translation>
    </message>
    <message>
        <source>Very high</source>
        <translation>Sehr hoch</translation>
    </message>
    <message>
        <source>Maximum</source>
        <translation>Maximal</translation>
    </message>
</context>
<context>
    <name>ReasoningPicker</name>
    <message>
        <source>Reasoning</source>
        <translation>Nachdenken</translation>
    </message>
    <message>
        <source>Reasoning: {0}</source>
        <translation>Nachdenken: {0}</translation>
    </message>
</context>
<context>
    <name>RequestNotifier</name>
    <message>
        <source>Show</source>
        <translation>Anzeigen</translation>
    </message>
    <message>
        <source>A question waits for your answer.</source>
        <translation>Eine Frage wartet auf Ihre Antwort.</translation>
    </message>
    <message>
        <source>The server says</source>
        <translation>Der Server sagt</translation>
    </message>
    <message>
        <source>In the conversation “{0}”</source>
        <translation>In der Unterhaltung „{0}“</translation>
    </message>
</context>
<context>
    <name>RuleCard</name>
    <message>
        <source>Revoke this rule? Other rules, or the mode, decide about such calls from then on.</source>
        <translation>Diese Regel widerrufen? Über solche Aufrufe entscheiden dann andere Regeln oder der Modus.</translation>
    </message>
    <message>
        <source>Revoke</source>
        <translation>Widerrufen</translation>
    </message>
    <message>
        <source>Revoke the rule: {0}</source>
        <translation>Die Regel widerrufen: {0}</translation>
    </message>
    <message>
        <source>Keep</source>
        <translation>Behalten</translation>
    </message>
    <message>
        <source>Keep the rule: {0}</source>
        <translation>Die Regel behalten: {0}</translation>
    </message>
    <message>
        <source>Really revoke the rule: {0}</source>
        <translation>Die Regel wirklich widerrufen: {0}</translation>
    </message>
    <message>
        <source>Everywhere</source>
        <translation>Überall</translation>
    </message>
    <message>
        <source>Only in the folder {0}</source>
        <translation>Nur im Ordner {0}</translation>
    </message>
    <message>
        <source>Only in one conversation</source>
        <translation>Nur in einer Unterhaltung</translation>
    </message>
    <message>
        <source>you</source>
        <translation>Ihnen</translation>
    </message>
    <message>
        <source>Made by {0}, {1}</source>
        <translation>Angelegt von {0}, {1}</translation>
    </message>
    <message>
        <source>never used</source>
        <translation>nie benutzt</translation>
    </message>
    <message>
        <source>last used {0}</source>
        <translation>zuletzt benutzt: {0}</translation>
    </message>
    <message>
        <source>holds until {0}</source>
        <translation>gilt bis {0}</translation>
    </message>
    <message>
        <source> · </source>
        <translation> · </translation>
    </message>
</context>
<context>
    <name>RuleChoice</name>
    <message>
        <source>The rule is stored, although this conversation is not.</source>
        <translation>Die Regel wird gespeichert, obwohl diese Unterhaltung es nicht wird.</translation>
    </message>
    <message>
        <source>Allow and keep this rule</source>
        <translation>Erlauben und diese Regel behalten</translation>
    </message>
    <message>
        <source>Allows the least</source>
        <translation>Erlaubt am wenigsten</translation>
    </message>
    <message>
        <source>In every conversation</source>
        <translation>In jeder Unterhaltung</translation>
    </message>
    <message>
        <source>Only in conversations of the folder {0}</source>
        <translation>Nur in Unterhaltungen des Ordners {0}</translation>
    </message>
    <message>
        <source>Rules can be revoked in the settings.</source>
        <translation>Regeln lassen sich in den Einstellungen widerrufen.</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>From now on allow without asking:</source>
        <translation>Ab jetzt ohne Nachfrage erlauben:</translation>
    </message>
</context>
<context>
    <name>RuleEditor</name>
    <message>
        <source>Add rule</source>
        <translation>Regel hinzufügen</translation>
    </message>
    <message>
        <source>Change rule</source>
        <translation>Regel ändern</translation>
    </message>
    <message>
        <source>The server of this tool is not running, so it is not known what the rule would allow. Open a conversation that uses the server, or choose Ask.</source>
        <translation>Der Server dieses Werkzeugs läuft nicht, daher ist nicht bekannt, was die Regel erlauben würde. Öffnen Sie eine Unterhaltung, die den Server verwendet, oder wählen Sie „Fragen“.</translation>
    </message>
    <message>
        <source>Decision about the calls</source>
        <translation>Entscheidung über die Aufrufe</translation>
    </message>
    <message>
        <source>Tool</source>
        <translation>Werkzeug</translation>
    </message>
    <message>
        <source>Applies to</source>
        <translation>Gilt für</translation>
    </message>
    <message>
        <source>Folder, host or command</source>
        <translation>Ordner, Host oder Befehl</translation>
    </message>
    <message>
        <source>Rule editor</source>
        <translation>Regeleditor</translation>
    </message>
    <message>
        <source>Cancel rule</source>
        <translation>Regel verwerfen</translation>
    </message>
</context>
<context>
    <name>RuleListEditor</name>
    <message>
        <source>Add rule…</source>
        <translation>Regel hinzufügen…</translation>
    </message>
    <message>
        <source>Remove the rule: {0}</source>
        <translation>Die Regel entfernen: {0}</translation>
    </message>
    <message>
        <source>Remove</source>
        <translation>Entfernen</translation>
    </message>
    <message>
        <source>Change the rule: {0}</source>
        <translation>Die Regel ändern: {0}</translation>
    </message>
    <message>
        <source>Change</source>
        <translation>Ändern</translation>
    </message>
</context>
<context>
    <name>RuleSettings</name>
    <message>
        <source>There are no rules. To make one, choose “Always allow…” when you are asked about a call.</source>
        <translation>Es gibt keine Regeln. Um eine anzulegen, wählen Sie „Immer erlauben…“, wenn Sie nach einem Aufruf gefragt werden.</translation>
    </message>
    <message>
        <source>Rules decide about calls before the mode does. Denied calls never run. Allowed calls run without asking, unless content from outside came into the conversation.</source>
        <translation>Regeln entscheiden vor dem Modus über Aufrufe. Abgelehnte Aufrufe laufen nie. Erlaubte laufen ohne Nachfrage, außer wenn Inhalte von außen in die Unterhaltung gekommen sind.</translation>
    </message>
    <message>
        <source>Try a call</source>
        <translation>Einen Aufruf ausprobieren</translation>
    </message>
    <message>
        <source>Saved rules</source>
        <translation>Dauerhafte Regeln</translation>
    </message>
    <message>
        <source>Show older rules ({0})</source>
        <translation>Ältere Regeln anzeigen ({0})</translation>
    </message>
</context>
<context>
    <name>Rules</name>
    <message>
        <source>Allow</source>
        <translation>Erlauben</translation>
    </message>
    <message>
        <source>Ask</source>
        <translation>Fragen</translation>
    </message>
    <message>
        <source>Deny</source>
        <translation>Ablehnen</translation>
    </message>
</context>
<context>
    <name>Sampling</name>
    <message>
        <source>No model is chosen to answer.</source>
        <translation>Es ist kein Modell gewählt, das antworten könnte.</translation>
    </message>
    <message>
        <source>Deny this, choose a model, and let the server ask again.</source>
        <translation>Lehnen Sie ab, wählen Sie ein Modell, und lassen Sie den Server erneut fragen.</translation>
    </message>
    <message>
        <source>{0} on {1} would answer</source>
        <translation>{0} auf {1} würde antworten</translation>
    </message>
    <message>
        <source>{0} answered</source>
        <translation>{0} hat geantwortet</translation>
    </message>
    <message>
        <source>It cost {0}.</source>
        <translation>Es hat {0} gekostet.</translation>
    </message>
    <message>
        <source>The answer was cut off before its end.</source>
        <translation>Die Antwort wurde vor dem Ende abgeschnitten.</translation>
    </message>
    <message>
        <source>Nothing has been sent to the server yet.</source>
        <translation>Noch wurde nichts an den Server gesendet.</translation>
    </message>
    <message>
        <source>The answer has at most {0} tokens; no tools are used.</source>
        <translation>Die Antwort hat höchstens {0} Token; Werkzeuge werden nicht benutzt.</translation>
    </message>
    <message>
        <source>The answer has at most {0} tokens, and may ask the server to use tools of its own.</source>
        <translation>Die Antwort hat höchstens {0} Token und darf den Server um eigene Werkzeuge bitten.</translation>
    </message>
    <message>
        <source>The cost is not known.</source>
        <translation>Die Kosten sind nicht bekannt.</translation>
    </message>
    <message>
        <source>It costs about {0} at most ({1} in and {2} out per million tokens).</source>
        <translation>Sie kostet höchstens etwa {0} (je Million Token {1} Eingabe und {2} Ausgabe).</translation>
    </message>
</context>
<context>
    <name>SamplingView</name>
    <message>
        <source>The server&apos;s instructions to the model</source>
        <translation>Anweisungen des Servers an das Modell</translation>
    </message>
    <message>
        <source>The server&apos;s tool “{0}”, which the model may call</source>
        <translation>Werkzeug „{0}“ des Servers, das das Modell aufrufen darf</translation>
    </message>
    <message>
        <source>The model&apos;s answer</source>
        <translation>Antwort des Modells</translation>
    </message>
    <message>
        <source>The model calls the server&apos;s tool “{0}”</source>
        <translation>Das Modell ruft das Werkzeug „{0}“ des Servers auf</translation>
    </message>
    <message>
        <source>The server asks</source>
        <translation>Der Server fragt</translation>
    </message>
    <message>
        <source>Answer of a model, according to the server</source>
        <translation>Antwort eines Modells, laut Server</translation>
    </message>
    <message>
        <source>Call of “{0}” by a model, according to the server</source>
        <translation>Aufruf von „{0}“ durch ein Modell, laut Server</translation>
    </message>
    <message>
        <source>Error of “{0}”, according to the server</source>
        <translation>Fehler von „{0}“, laut Server</translation>
    </message>
    <message>
        <source>Result of “{0}”, according to the server</source>
        <translation>Ergebnis von „{0}“, laut Server</translation>
    </message>
</context>
<context>
    <name>ScheduleCard</name>
    <message>
        <source>Scheduled prompt {0}</source>
        <translation>Geplanter Prompt {0}</translation>
    </message>
    <message>
        <source>Keep</source>
        <translation>Behalten</translation>
    </message>
    <message>
        <source>Keep {0}</source>
        <translation>{0} behalten</translation>
    </message>
    <message>
        <source>Delete</source>
        <translation>Löschen</translation>
    </message>
    <message>
        <source>Really delete {0}</source>
        <translation>{0} wirklich löschen</translation>
    </message>
    <message>
        <source>Delete “{0}”? Its conversations stay.</source>
        <translation>„{0}“ löschen? Die Unterhaltungen bleiben.</translation>
    </message>
    <message>
        <source>Run now</source>
        <translation>Jetzt ausführen</translation>
    </message>
    <message>
        <source>Run {0} now</source>
        <translation>{0} jetzt ausführen</translation>
    </message>
    <message>
        <source>Resume</source>
        <translation>Fortsetzen</translation>
    </message>
    <message>
        <source>Resume {0}</source>
        <translation>{0} fortsetzen</translation>
    </message>
    <message>
        <source>Pause</source>
        <translation>Pausieren</translation>
    </message>
    <message>
        <source>Pause {0}</source>
        <translation>{0} pausieren</translation>
    </message>
    <message>
        <source>Edit</source>
        <translation>Bearbeiten</translation>
    </message>
    <message>
        <source>Edit {0}</source>
        <translation>{0} bearbeiten</translation>
    </message>
    <message>
        <source>Open the conversation of {0}</source>
        <translation>Unterhaltung von {0} öffnen</translation>
    </message>
    <message>
        <source>Open conversation</source>
        <translation>Unterhaltung öffnen</translation>
    </message>
    <message>
        <source>Usage and budgets</source>
        <translation>Verbrauch und Budgets</translation>
    </message>
    <message>
        <source>Delete…</source>
        <translation>Löschen…</translation>
    </message>
    <message>
        <source>Delete {0}</source>
        <translation>{0} löschen</translation>
    </message>
    <message>
        <source>{0}. Paused.</source>
        <translation>{0}. Pausiert.</translation>
    </message>
    <message>
        <source>{0}. No more runs.</source>
        <translation>{0}. Keine weiteren Läufe.</translation>
    </message>
    <message>
        <source>{0}. Next: {1}</source>
        <translation>{0}. Nächster Lauf: {1}</translation>
    </message>
    <message>
        <source>It has not run yet.</source>
        <translation>Noch nie gelaufen.</translation>
    </message>
    <message>
        <source>Waiting for your approval since {0}. The next run begins after this one has ended.</source>
        <translation>Wartet seit {0} auf Ihre Freigabe. Der nächste Lauf beginnt, wenn dieser zu Ende ist.</translation>
    </message>
    <message>
        <source>Running since {0}.</source>
        <translation>Läuft seit {0}.</translation>
    </message>
    <message>
        <source>Last run: {0}, {1}</source>
        <translation>Letzter Lauf: {0}, {1}</translation>
    </message>
    <message>
        <source>{0} Runs that are due until then are skipped. Raise the budget to continue sooner.</source>
        <translation>{0} Läufe, deren Zeit inzwischen verstreicht, werden ausgelassen. Erhöhen Sie das Budget, damit es früher weitergeht.</translation>
    </message>
    <message>
        <source>{0} One run waits until there is budget again. Raise the budget to continue sooner.</source>
        <translation>{0} Ein Lauf wartet und beginnt, sobald wieder Budget da ist. Erhöhen Sie es, damit es früher weitergeht.</translation>
    </message>
</context>
<context>
    <name>ScheduleDialog</name>
    <message>
        <source>Close</source>
        <translation>Schließen</translation>
    </message>
    <message>
        <source>Scheduled prompts run only while Desktop Agent runs.</source>
        <translation>Geplante Prompts laufen nur, während Desktop Agent läuft.</translation>
    </message>
    <message>
        <source>Close to the tray: the program keeps running when you close the window</source>
        <translation>In den Infobereich schließen: Das Programm läuft weiter, wenn Sie das Fenster schließen</translation>
    </message>
    <message>
        <source>Scheduled prompts</source>
        <translation>Geplante Prompts</translation>
    </message>
</context>
<context>
    <name>ScheduleEditor</name>
    <message>
        <source>Scheduled prompt editor</source>
        <translation>Editor für geplante Prompts</translation>
    </message>
    <message>
        <source>{0} (not listed)</source>
        <translation>{0} (nicht in der Liste)</translation>
    </message>
    <message>
        <source>The prompt has more than {0} characters. Shorten it.</source>
        <translation>Der Prompt hat mehr als {0} Zeichen. Kürzen Sie ihn.</translation>
    </message>
    <message>
        <source>There is nothing to send yet. Write the prompt.</source>
        <translation>Es gibt noch nichts zu senden. Schreiben Sie den Prompt.</translation>
    </message>
    <message>
        <source>As in new conversations</source>
        <translation>Wie in neuen Unterhaltungen</translation>
    </message>
    <message>
        <source>A scheduled prompt needs a name. Write one.</source>
        <translation>Ein geplanter Prompt braucht einen Namen. Geben Sie einen ein.</translation>
    </message>
    <message>
        <source>Name</source>
        <translation>Name</translation>
    </message>
    <message>
        <source>Prompt</source>
        <translation>Prompt</translation>
    </message>
    <message>
        <source>When</source>
        <translation>Wann</translation>
    </message>
    <message>
        <source>Workspace folder</source>
        <translation>Arbeitsordner</translation>
    </message>
    <message>
        <source>Browse…</source>
        <translation>Durchsuchen…</translation>
    </message>
    <message>
        <source>Model</source>
        <translation>Modell</translation>
    </message>
    <message>
        <source>{0} (removed)</source>
        <translation>{0} (entfernt)</translation>
    </message>
    <message>
        <source>Calls that need your approval wait for you in “Waiting approvals”.</source>
        <translation>Aufrufe, die Ihre Freigabe brauchen, warten unter „Wartende Freigaben“ auf Sie.</translation>
    </message>
    <message>
        <source>Mode</source>
        <translation>Modus</translation>
    </message>
    <message>
        <source>Each run begins a new conversation</source>
        <translation>Jeder Lauf beginnt eine neue Unterhaltung</translation>
    </message>
    <message>
        <source>All runs go on in one conversation</source>
        <translation>Alle Läufe setzen eine Unterhaltung fort</translation>
    </message>
    <message>
        <source>Conversation</source>
        <translation>Unterhaltung</translation>
    </message>
    <message>
        <source>Run once at the next start of the program</source>
        <translation>Einmal nachholen, wenn das Programm das nächste Mal startet</translation>
    </message>
    <message>
        <source>Skip what was missed</source>
        <translation>Verpasstes auslassen</translation>
    </message>
    <message>
        <source>If the program is not running at that time</source>
        <translation>Wenn das Programm dann nicht läuft</translation>
    </message>
</context>
<context>
    <name>ScheduleForm</name>
    <message>
        <source>Add scheduled prompt…</source>
        <translation>Geplanten Prompt hinzufügen…</translation>
    </message>
    <message>
        <source>Nothing is scheduled. A scheduled prompt is sent automatically, once or repeatedly.</source>
        <translation>Nichts ist geplant. Ein geplanter Prompt wird automatisch gesendet, einmal oder wiederholt.</translation>
    </message>
</context>
<context>
    <name>ScheduleNotifier</name>
    <message>
        <source>{0} They continue when there is budget again.</source>
        <translation>{0} Es geht weiter, sobald wieder Budget da ist.</translation>
    </message>
    <message>
        <source>Scheduled prompts wait</source>
        <translation>Geplante Prompts warten</translation>
    </message>
</context>
<context>
    <name>ScheduleWords</name>
    <message>
        <source>Once, {0}</source>
        <translation>Einmal, {0}</translation>
    </message>
    <message>
        <source>On the last day of every month at {0}</source>
        <translation>Am letzten Tag jedes Monats um {0}</translation>
    </message>
    <message>
        <source>On day {0} of every month at {1}</source>
        <translation>Am {0}. jedes Monats um {1}</translation>
    </message>
    <message>
        <source>By the cron line {0}</source>
        <translation>Nach der Cron-Zeile {0}</translation>
    </message>
    <message>
        <source>dddd, d MMMM</source>
        <translation>dddd, d. MMMM</translation>
    </message>
    <message>
        <source>dddd, d MMMM yyyy</source>
        <translation>dddd, d. MMMM yyyy</translation>
    </message>
    <message>
        <source>{0}, {1}</source>
        <translation>{0}, {1}</translation>
    </message>
    <message>
        <source>done</source>
        <translation>fertig</translation>
    </message>
    <message>
        <source>failed</source>
        <translation>fehlgeschlagen</translation>
    </message>
    <message>
        <source>stopped at a limit</source>
        <translation>an einer Grenze angehalten</translation>
    </message>
    <message>
        <source>stopped</source>
        <translation>angehalten</translation>
    </message>
    <message>
        <source>interrupted when the program ended</source>
        <translation>beim Ende des Programms unterbrochen</translation>
    </message>
    <message>
        <source>could not begin</source>
        <translation>konnte nicht beginnen</translation>
    </message>
    <message>
        <source>missed, and skipped</source>
        <translation>verpasst und ausgelassen</translation>
    </message>
    <message>
        <source>ended</source>
        <translation>beendet</translation>
    </message>
    <message>
        <source>Every day at {0}</source>
        <translation>Jeden Tag um {0}</translation>
    </message>
    <message>
        <source>Every weekday at {0}</source>
        <translation>Montag bis Freitag um {0}</translation>
    </message>
    <message>
        <source>Every {0} at {1}</source>
        <translation>Jeden {0} um {1}</translation>
    </message>
    <message>
        <source>Every 24 hours</source>
        <translation>Alle 24 Stunden</translation>
    </message>
    <message>
        <source>Every {0} days, exactly</source>
        <translation>Alle {0} Tage, auf die Minute</translation>
    </message>
    <message>
        <source>Every hour</source>
        <translation>Jede Stunde</translation>
    </message>
    <message>
        <source>Every {0} hours</source>
        <translation>Alle {0} Stunden</translation>
    </message>
    <message>
        <source>Every minute</source>
        <translation>Jede Minute</translation>
    </message>
    <message>
        <source>Every {0} minutes</source>
        <translation>Alle {0} Minuten</translation>
    </message>
    <message>
        <source>{0} and {1}</source>
        <translation>{0} und {1}</translation>
    </message>
</context>
<context>
    <name>SearchFilters</name>
    <message>
        <source>Search filters</source>
        <translation>Suchfilter</translation>
    </message>
    <message>
        <source>Menu: {0}</source>
        <translation>Menü: {0}</translation>
    </message>
    <message>
        <source>Filters</source>
        <translation>Filter</translation>
    </message>
    <message>
        <source>Remove the filter: {0}</source>
        <translation>Den Filter entfernen: {0}</translation>
    </message>
    <message>
        <source>Folder</source>
        <translation>Ordner</translation>
    </message>
    <message>
        <source>Has a picture</source>
        <translation>Mit Bild</translation>
    </message>
    <message>
        <source>Has a tool call</source>
        <translation>Mit Werkzeugaufruf</translation>
    </message>
    <message>
        <source>In written files</source>
        <translation>In geschriebenen Dateien</translation>
    </message>
    <message>
        <source>Any time</source>
        <translation>Beliebige Zeit</translation>
    </message>
    <message>
        <source>Today</source>
        <translation>Heute</translation>
    </message>
    <message>
        <source>Last 7 days</source>
        <translation>Letzte 7 Tage</translation>
    </message>
    <message>
        <source>Last 30 days</source>
        <translation>Letzte 30 Tage</translation>
    </message>
    <message>
        <source>This year</source>
        <translation>Dieses Jahr</translation>
    </message>
    <message>
        <source>Said by anybody</source>
        <translation>Von irgendwem gesagt</translation>
    </message>
    <message>
        <source>Said by me</source>
        <translation>Von mir gesagt</translation>
    </message>
    <message>
        <source>Said by the model</source>
        <translation>Vom Modell gesagt</translation>
    </message>
    <message>
        <source>Any model</source>
        <translation>Beliebiges Modell</translation>
    </message>
    <message>
        <source>Any tag</source>
        <translation>Beliebiges Schlagwort</translation>
    </message>
    <message>
        <source>Any workspace folder</source>
        <translation>Beliebiger Arbeitsordner</translation>
    </message>
    <message>
        <source>Date</source>
        <translation>Datum</translation>
    </message>
    <message>
        <source>Model</source>
        <translation>Modell</translation>
    </message>
    <message>
        <source>Any folder</source>
        <translation>Beliebiger Ordner</translation>
    </message>
    <message>
        <source>Any program</source>
        <translation>Beliebiges Programm</translation>
    </message>
    <message>
        <source>Program</source>
        <translation>Programm</translation>
    </message>
    <message>
        <source>Tag</source>
        <translation>Schlagwort</translation>
    </message>
    <message>
        <source>Workspace folder</source>
        <translation>Arbeitsordner</translation>
    </message>
    <message>
        <source>Said by</source>
        <translation>Gesagt von</translation>
    </message>
</context>
<context>
    <name>SearchResults</name>
    <message>
        <source>All conversations</source>
        <translation>Alle Unterhaltungen</translation>
    </message>
    <message>
        <source>There are more results. Add a word to see fewer.</source>
        <translation>Es gibt noch mehr. Ein weiteres Wort grenzt die Suche ein.</translation>
    </message>
    <message>
        <source>Still indexing: not everything is searched yet</source>
        <translation>Der Index entsteht noch: Nicht alles wird schon durchsucht</translation>
    </message>
    <message>
        <source>Nothing found</source>
        <translation>Nichts gefunden</translation>
    </message>
    <message>
        <source>Nothing found for “{0}”</source>
        <translation>Nichts gefunden zu „{0}“</translation>
    </message>
    <message>
        <source>Show all {0}</source>
        <translation>Alle {0} anzeigen</translation>
    </message>
    <message>
        <source>Tool call</source>
        <translation>Werkzeugaufruf</translation>
    </message>
    <message>
        <source>File written</source>
        <translation>Geschriebene Datei</translation>
    </message>
    <message>
        <source>Attachment</source>
        <translation>Anhang</translation>
    </message>
    <message>
        <source>Note</source>
        <translation>Hinweis</translation>
    </message>
    <message>
        <source>You</source>
        <translation>Sie</translation>
    </message>
    <message>
        <source>Assistant</source>
        <translation>Assistent</translation>
    </message>
</context>
<context>
    <name>SearchResultsView</name>
    <message>
        <source>Search results</source>
        <translation>Suchergebnisse</translation>
    </message>
</context>
<context>
    <name>SendStopButton</name>
    <message>
        <source>Send</source>
        <translation>Senden</translation>
    </message>
    <message>
        <source>Stopping…</source>
        <translation>Wird angehalten…</translation>
    </message>
    <message>
        <source>Stop</source>
        <translation>Anhalten</translation>
    </message>
    <message>
        <source>Queue the message</source>
        <translation>Die Nachricht einreihen</translation>
    </message>
    <message>
        <source>Send as soon as possible</source>
        <translation>So bald wie möglich senden</translation>
    </message>
    <message>
        <source>Send when the agent is done</source>
        <translation>Senden, wenn der Agent fertig ist</translation>
    </message>
</context>
<context>
    <name>Sentence</name>
    <message>
        <source>- and {count} more</source>
        <translation>- und {count} weitere</translation>
    </message>
    <message>
        <source>A ModelRequest has its own tools.</source>
        <translation>Ein ModelRequest hat eigene Werkzeuge.</translation>
    </message>
    <message>
        <source>A call was not undone: {why}</source>
        <translation>Ein Aufruf wurde nicht rückgängig gemacht: {why}</translation>
    </message>
    <message>
        <source>A call was undone: {words}</source>
        <translation>Ein Aufruf wurde rückgängig gemacht: {words}</translation>
    </message>
    <message>
        <source>A command that nobody was asked about gets no more time than that. Let it do less at once; one that writes a file is asked about, and gets the time that it names.</source>
        <translation>Ein Befehl, nach dem niemand gefragt wurde, bekommt nicht mehr Zeit als diese. Lassen Sie ihn weniger auf einmal tun; nach einem, der eine Datei schreibt, wird gefragt, und er bekommt die Zeit, die er nennt.</translation>
    </message>
    <message>
        <source>A conversation has no “{name}” to change.</source>
        <translation>Eine Unterhaltung hat kein „{name}“, das sich ändern ließe.</translation>
    </message>
    <message>
        <source>A cron line has five fields: minute, hour, day, month and weekday.</source>
        <translation>Eine Cron-Zeile hat fünf Felder: Minute, Stunde, Tag, Monat und Wochentag.</translation>
    </message>
    <message>
        <source>A folder cannot be moved into itself.</source>
        <translation>Ein Ordner kann nicht in sich selbst verschoben werden.</translation>
    </message>
    <message>
        <source>A folder needs a name.</source>
        <translation>Ein Ordner braucht einen Namen.</translation>
    </message>
    <message>
        <source>A guard needs max_iterations of at least 1.</source>
        <translation>Ein Wächter braucht max_iterations von mindestens 1.</translation>
    </message>
    <message>
        <source>A guard would never be asked at this moment.</source>
        <translation>Ein Wächter würde zu diesem Zeitpunkt nie gefragt.</translation>
    </message>
    <message>
        <source>A guard “{name}” is there already.</source>
        <translation>Einen Wächter „{name}“ gibt es schon.</translation>
    </message>
    <message>
        <source>A hidden message of the service, such as its instructions, was left out.</source>
        <translation>Eine verborgene Nachricht des Dienstes, etwa seine Anweisungen, wurde weggelassen.</translation>
    </message>
    <message>
        <source>A history is a list of messages, and this is none.</source>
        <translation>Ein Verlauf ist eine Liste von Nachrichten, und das ist keine.</translation>
    </message>
    <message>
        <source>A hook wants a person to decide.</source>
        <translation>Ein Hook verlangt, dass ein Mensch entscheidet.</translation>
    </message>
    <message>
        <source>A limit was reached: {which}.</source>
        <translation>Eine Grenze wurde erreicht: {which}.</translation>
    </message>
    <message>
        <source>A message by “{name}”, whom this version does not know, was left out.</source>
        <translation>Eine Nachricht von „{name}“, den diese Version nicht kennt, wurde weggelassen.</translation>
    </message>
    <message>
        <source>A message is nested too deep.</source>
        <translation>Eine Nachricht ist zu tief verschachtelt.</translation>
    </message>
    <message>
        <source>A message waits to be sent.</source>
        <translation>Eine Nachricht wartet darauf, gesendet zu werden.</translation>
    </message>
    <message>
        <source>A newer version of this program wrote “{path}”.</source>
        <translation>Eine neuere Version dieses Programms hat „{path}“ geschrieben.</translation>
    </message>
    <message>
        <source>A part of the conversation could not be written ({kind}).</source>
        <translation>Ein Teil der Unterhaltung konnte nicht geschrieben werden ({kind}).</translation>
    </message>
    <message>
        <source>A part of “{path}” is a file, not a folder.</source>
        <translation>Ein Teil von „{path}“ ist eine Datei, kein Ordner.</translation>
    </message>
    <message>
        <source>A picture</source>
        <translation>Ein Bild</translation>
    </message>
    <message>
        <source>A picture in the export is not a picture, or not of the type that it says.</source>
        <translation>Ein Bild des Exports ist keines oder von anderer Art, als es angibt.</translation>
    </message>
    <message>
        <source>A picture is not in the export, or it is damaged.</source>
        <translation>Ein Bild ist nicht im Export, oder es ist beschädigt.</translation>
    </message>
    <message>
        <source>A picture is not in the export; its place is kept.</source>
        <translation>Ein Bild ist nicht im Export; sein Platz bleibt erhalten.</translation>
    </message>
    <message>
        <source>A picture is not in the export; its place is marked.</source>
        <translation>Ein Bild ist nicht im Export; sein Platz ist gekennzeichnet.</translation>
    </message>
    <message>
        <source>A picture of the export was changed or damaged.</source>
        <translation>Ein Bild des Exports wurde verändert oder beschädigt.</translation>
    </message>
    <message>
        <source>A picture of this conversation cannot be read now: {reason}.</source>
        <translation>Ein Bild dieser Unterhaltung lässt sich gerade nicht lesen: {reason}.</translation>
    </message>
    <message>
        <source>A picture of this conversation is missing from the data folder.</source>
        <translation>Ein Bild dieser Unterhaltung fehlt im Datenordner.</translation>
    </message>
    <message>
        <source>A picture of this conversation was changed or damaged on the disk.</source>
        <translation>Ein Bild dieser Unterhaltung wurde auf dem Datenträger verändert oder beschädigt.</translation>
    </message>
    <message>
        <source>A picture was removed before it was needed.</source>
        <translation>Ein Bild wurde entfernt, bevor es gebraucht wurde.</translation>
    </message>
    <message>
        <source>A program to run has a name, and its output a limit that is not negative.</source>
        <translation>Ein auszuführendes Programm hat einen Namen, und seine Ausgabe eine Grenze, die nicht negativ ist.</translation>
    </message>
    <message>
        <source>A prompt holds text and pictures, nothing else.</source>
        <translation>Ein Prompt enthält Text und Bilder, sonst nichts.</translation>
    </message>
    <message>
        <source>A prompt policy “{id}” is installed already.</source>
        <translation>Die Prompt-Richtlinie „{id}“ ist schon eingerichtet.</translation>
    </message>
    <message>
        <source>A property “{name}”, which this version does not know, was left out.</source>
        <translation>Eine Eigenschaft „{name}“, die diese Version nicht kennt, wurde weggelassen.</translation>
    </message>
    <message>
        <source>A question needs choices or must take free text.</source>
        <translation>Eine Frage braucht Antworten zur Auswahl oder muss freien Text annehmen.</translation>
    </message>
    <message>
        <source>A question that this provider refused to answer was left out, and so was the refusal.</source>
        <translation>Eine Frage, deren Beantwortung dieser Anbieter verweigert hat, wurde weggelassen, ebenso die Weigerung.</translation>
    </message>
    <message>
        <source>A recording was left out. Its words are kept if the export has them.</source>
        <translation>Eine Aufnahme wurde weggelassen; ihre Worte bleiben erhalten, wo der Export sie hat.</translation>
    </message>
    <message>
        <source>A request can hold at most {count} pictures.</source>
        <translation>Eine Anfrage kann höchstens {count} Bilder enthalten.</translation>
    </message>
    <message>
        <source>A result without its call was kept as it is.</source>
        <translation>Ein Ergebnis eines Aufrufs, der nicht da ist, blieb unverändert erhalten.</translation>
    </message>
    <message>
        <source>A rule made by {origin} asks about something that this call may do. It is not certain whether it does.</source>
        <translation>Eine von {origin} angelegte Regel fragt nach etwas, das dieser Aufruf vielleicht tut. Ob er es tut, ist nicht sicher.</translation>
    </message>
    <message>
        <source>A rule made by {origin} asks about this call.</source>
        <translation>Eine von {origin} angelegte Regel fragt nach diesem Aufruf.</translation>
    </message>
    <message>
        <source>A rule made by {origin} denies something that this call may do. It is not certain whether it does.</source>
        <translation>Eine von {origin} angelegte Regel verbietet etwas, das dieser Aufruf vielleicht tut. Ob er es tut, ist nicht sicher.</translation>
    </message>
    <message>
        <source>A rule made by {origin} denies this call. Find another way.</source>
        <translation>Eine von {origin} angelegte Regel verbietet diesen Aufruf. Finden Sie einen anderen Weg.</translation>
    </message>
    <message>
        <source>A saved file is missing from the data folder.</source>
        <translation>Eine gesicherte Datei fehlt im Datenordner.</translation>
    </message>
    <message>
        <source>A saved file was changed or damaged on the disk.</source>
        <translation>Eine gesicherte Datei wurde auf dem Datenträger verändert oder beschädigt.</translation>
    </message>
    <message>
        <source>A saved file was removed before it was needed.</source>
        <translation>Eine gesicherte Datei wurde entfernt, bevor sie gebraucht wurde.</translation>
    </message>
    <message>
        <source>A stop sequence of blanks is not taken by this provider, so it was not sent.</source>
        <translation>Eine Stoppfolge aus Leerzeichen nimmt dieser Anbieter nicht an, daher wurde sie nicht gesendet.</translation>
    </message>
    <message>
        <source>A stored picture must be loaded before a request is made.</source>
        <translation>Ein gespeichertes Bild muss geladen werden, bevor eine Anfrage entsteht.</translation>
    </message>
    <message>
        <source>A title that was too long was cut.</source>
        <translation>Ein zu langer Titel wurde gekürzt.</translation>
    </message>
    <message>
        <source>A tool is a function that answers once.</source>
        <translation>Ein Werkzeug ist eine Funktion, die einmal antwortet.</translation>
    </message>
    <message>
        <source>Accept edits</source>
        <translation>Änderungen annehmen</translation>
    </message>
    <message>
        <source>Add credit at the provider, or choose another provider.</source>
        <translation>Laden Sie beim Anbieter Guthaben auf, oder wählen Sie einen anderen Anbieter.</translation>
    </message>
    <message>
        <source>Add it again if you want it.</source>
        <translation>Fügen Sie es wieder hinzu, wenn Sie es brauchen.</translation>
    </message>
    <message>
        <source>Allow it once.</source>
        <translation>Erlauben Sie ihn einmal.</translation>
    </message>
    <message>
        <source>An entry of the setting “{title}” cannot be used and was left out.</source>
        <translation>Ein Eintrag der Einstellung „{title}“ lässt sich nicht verwenden und wurde weggelassen.</translation>
    </message>
    <message>
        <source>An event loop runs here already.</source>
        <translation>Hier läuft schon eine Ereignisschleife.</translation>
    </message>
    <message>
        <source>An index of the saved conversations was damaged, so that some could not be found. It was rebuilt from the conversations; nothing is lost.</source>
        <translation>Ein Index der gespeicherten Unterhaltungen war beschädigt, sodass einige nicht gefunden werden konnten. Er wurde aus den Unterhaltungen selbst neu angelegt; nichts ist verloren.</translation>
    </message>
    <message>
        <source>Another answer in its conversation has not ended yet.</source>
        <translation>Eine andere Antwort in der Unterhaltung ist noch nicht zu Ende.</translation>
    </message>
    <message>
        <source>Another conversation of this export has the same id.</source>
        <translation>Eine andere Unterhaltung dieses Exports hat dieselbe ID.</translation>
    </message>
    <message>
        <source>Another model made calls in this turn, so {model} goes on without the reasoning behind them.</source>
        <translation>Ein anderes Modell hat in dieser Runde Aufrufe gemacht, daher macht {model} ohne die Überlegungen dahinter weiter.</translation>
    </message>
    <message>
        <source>Another process has written to this conversation, so this window no longer saves to it.</source>
        <translation>Ein anderer Prozess hat in diese Unterhaltung geschrieben, daher speichert dieses Fenster nichts mehr darin.</translation>
    </message>
    <message>
        <source>Another process runs the scheduled prompts.</source>
        <translation>Ein anderer Prozess führt die geplanten Prompts aus.</translation>
    </message>
    <message>
        <source>Another task reads these steps already.</source>
        <translation>Eine andere Task liest diese Schritte schon.</translation>
    </message>
    <message>
        <source>Another task reads this answer already.</source>
        <translation>Eine andere Task liest diese Antwort schon.</translation>
    </message>
    <message>
        <source>Answer with one that allows or denies.</source>
        <translation>Antworten Sie mit einer Entscheidung, die erlaubt oder ablehnt.</translation>
    </message>
    <message>
        <source>Answer with words, or with several of the choices.</source>
        <translation>Antworten Sie mit Worten oder mit mehreren der Vorschläge.</translation>
    </message>
    <message>
        <source>Ask again if that does no harm: the server is then started again.</source>
        <translation>Fragen Sie erneut, wenn das nicht schadet: Der Server wird dann neu gestartet.</translation>
    </message>
    <message>
        <source>Ask first, with send() for example.</source>
        <translation>Fragen Sie erst, zum Beispiel mit send().</translation>
    </message>
    <message>
        <source>Ask for less at once, or choose a model that can be bound to a schema.</source>
        <translation>Verlangen Sie weniger auf einmal, oder wählen Sie ein Modell, das sich an ein Schema binden lässt.</translation>
    </message>
    <message>
        <source>Ask for less at once, or let the server offer less: it may have an option for that.</source>
        <translation>Fragen Sie weniger auf einmal ab, oder lassen Sie den Server weniger anbieten: Vielleicht hat er eine Einstellung dafür.</translation>
    </message>
    <message>
        <source>Ask for less at once.</source>
        <translation>Verlangen Sie weniger auf einmal.</translation>
    </message>
    <message>
        <source>Ask the maker of the server for its “http” address.</source>
        <translation>Fragen Sie den Hersteller des Servers nach seiner „http“-Adresse.</translation>
    </message>
    <message>
        <source>Ask the operator of the proxy, or correct its address in the system&apos;s settings or in the environment (http_proxy, https_proxy, all_proxy).</source>
        <translation>Fragen Sie den Betreiber des Proxys, oder berichtigen Sie seine Adresse in den Systemeinstellungen oder in der Umgebung (http_proxy, https_proxy, all_proxy).</translation>
    </message>
    <message>
        <source>Ask the operator of the proxy, or correct the proxy in the system&apos;s settings.</source>
        <translation>Fragen Sie den Betreiber des Proxys, oder berichtigen Sie ihn in den Systemeinstellungen.</translation>
    </message>
    <message>
        <source>Ask the operator of the proxy, or correct the proxy in the system&apos;s settings. Then press Test.</source>
        <translation>Fragen Sie den Betreiber des Proxys, oder berichtigen Sie ihn in den Systemeinstellungen; drücken Sie dann „Testen“.</translation>
    </message>
    <message>
        <source>Ask the operator of the server for a client id, and enter it with Edit; or ask for a key, and add it as a header.</source>
        <translation>Fragen Sie den Betreiber des Servers nach einer Client-ID, und tragen Sie sie mit „Bearbeiten“ ein; oder fragen Sie nach einem Schlüssel, und fügen Sie ihn als Kopfzeile hinzu.</translation>
    </message>
    <message>
        <source>Ask the operator of the server.</source>
        <translation>Fragen Sie den Betreiber des Servers.</translation>
    </message>
    <message>
        <source>Ask the operator of the server: the address must begin with https:// and be public.</source>
        <translation>Fragen Sie den Betreiber des Servers: Die Adresse muss mit https:// beginnen und öffentlich sein.</translation>
    </message>
    <message>
        <source>Ask you</source>
        <translation>Rückfrage stellen</translation>
    </message>
    <message>
        <source>Attach it again.</source>
        <translation>Hängen Sie es noch einmal an.</translation>
    </message>
    <message>
        <source>Attach it as PNG or JPEG.</source>
        <translation>Hängen Sie es als PNG oder JPEG an.</translation>
    </message>
    <message>
        <source>Attach it as PNG, JPEG or WebP.</source>
        <translation>Hängen Sie es als PNG, JPEG oder WebP an.</translation>
    </message>
    <message>
        <source>Attach pictures of its pages.</source>
        <translation>Hängen Sie Bilder seiner Seiten an.</translation>
    </message>
    <message>
        <source>Attach the picture itself instead.</source>
        <translation>Hängen Sie stattdessen das Bild selbst an.</translation>
    </message>
    <message>
        <source>Bytes that are not text were replaced.</source>
        <translation>Bytes, die kein Text sind, wurden ersetzt.</translation>
    </message>
    <message>
        <source>Calculate</source>
        <translation>Berechnen</translation>
    </message>
    <message>
        <source>Calls of this conversation are still open.</source>
        <translation>Aufrufe dieser Unterhaltung sind noch offen.</translation>
    </message>
    <message>
        <source>Cancelled</source>
        <translation>Abgebrochen</translation>
    </message>
    <message>
        <source>Change the message and send it again.</source>
        <translation>Ändern Sie die Nachricht, und senden Sie sie erneut.</translation>
    </message>
    <message>
        <source>Change the message, the model or its settings. The server&apos;s message says what it does not accept.</source>
        <translation>Ändern Sie die Nachricht, das Modell oder dessen Einstellungen. Die Meldung des Servers sagt, was er nicht annimmt.</translation>
    </message>
    <message>
        <source>Change the mode</source>
        <translation>Modus wechseln</translation>
    </message>
    <message>
        <source>Change the price in the file itself.</source>
        <translation>Ändern Sie den Preis in der Datei selbst.</translation>
    </message>
    <message>
        <source>Changes were redone. The model is told before it goes on.</source>
        <translation>Änderungen wurden wiederhergestellt. Das Modell erfährt davon, bevor es weiterarbeitet.</translation>
    </message>
    <message>
        <source>Changes were undone. The model is told before it goes on.</source>
        <translation>Änderungen wurden rückgängig gemacht. Das Modell erfährt davon, bevor es weiterarbeitet.</translation>
    </message>
    <message>
        <source>Changes “{path}” in one place.

Old:
{old}

New:
{new}</source>
        <translation>Ändert „{path}“ an einer Stelle.

Bisher:
{old}

Neu:
{new}</translation>
    </message>
    <message>
        <source>Changes “{path}” in {count} places.

Old:
{old}

New:
{new}</source>
        <translation>Ändert „{path}“ an {count} Stellen.

Bisher:
{old}

Neu:
{new}</translation>
    </message>
    <message>
        <source>Check each of its five fields.</source>
        <translation>Prüfen Sie jedes der fünf Felder.</translation>
    </message>
    <message>
        <source>Check it in the settings, and try again.</source>
        <translation>Prüfen Sie ihn in den Einstellungen, und versuchen Sie es erneut.</translation>
    </message>
    <message>
        <source>Check its address and your connection, then press Test.</source>
        <translation>Prüfen Sie die Adresse und Ihre Verbindung, und drücken Sie dann „Testen“.</translation>
    </message>
    <message>
        <source>Check its address. If it is your own server, add its certificate to those that the system trusts, or name a file with it in SSL_CERT_FILE.</source>
        <translation>Prüfen Sie die Adresse. Ist es Ihr eigener Server, nehmen Sie sein Zertifikat unter die auf, denen das System vertraut, oder nennen Sie in SSL_CERT_FILE eine Datei damit.</translation>
    </message>
    <message>
        <source>Check that it exists and can be read.</source>
        <translation>Sehen Sie nach, ob es da ist und gelesen werden darf.</translation>
    </message>
    <message>
        <source>Check that the server is running and the address is right, then try again.</source>
        <translation>Prüfen Sie, ob der Server läuft und die Adresse stimmt, und versuchen Sie es dann erneut.</translation>
    </message>
    <message>
        <source>Check the API key for this provider.</source>
        <translation>Prüfen Sie den API-Schlüssel für diesen Anbieter.</translation>
    </message>
    <message>
        <source>Check the address; a private server needs its certificate in the system&apos;s trust store.</source>
        <translation>Prüfen Sie die Adresse; ein privater Server braucht sein Zertifikat im Zertifikatsspeicher des Systems.</translation>
    </message>
    <message>
        <source>Check the connection, then load it again.</source>
        <translation>Prüfen Sie die Verbindung, und laden Sie es dann noch einmal.</translation>
    </message>
    <message>
        <source>Check the connection, then sign in again.</source>
        <translation>Prüfen Sie die Verbindung, und melden Sie sich dann neu an.</translation>
    </message>
    <message>
        <source>Check the disk and its free space, then revoke the rule again.</source>
        <translation>Prüfen Sie den Datenträger und seinen freien Platz, und widerrufen Sie die Regel dann noch einmal.</translation>
    </message>
    <message>
        <source>Check the disk and the folder&apos;s permissions; the conversation stays open in memory.</source>
        <translation>Prüfen Sie den Datenträger und die Rechte des Ordners; die Unterhaltung bleibt im Arbeitsspeicher offen.</translation>
    </message>
    <message>
        <source>Check the server&apos;s address: it should be the API&apos;s base URL, often ending in /v1.</source>
        <translation>Prüfen Sie die Adresse des Servers: Sie sollte die Basis-URL der API sein, oft mit /v1 am Ende.</translation>
    </message>
    <message>
        <source>Check whether its address should begin with http:// instead of https://.</source>
        <translation>Prüfen Sie, ob seine Adresse mit http:// statt https:// beginnen sollte.</translation>
    </message>
    <message>
        <source>Check whether the address should begin with http:// instead of https://.</source>
        <translation>Prüfen Sie, ob die Adresse mit http:// statt https:// beginnen sollte.</translation>
    </message>
    <message>
        <source>Check whether the address should begin with https:// instead of http://.</source>
        <translation>Prüfen Sie, ob die Adresse mit https:// statt http:// beginnen sollte.</translation>
    </message>
    <message>
        <source>Check whether the other program still opens it. If that program is running, close it and try again.</source>
        <translation>Sehen Sie nach, ob das andere Programm sie noch öffnet. Läuft es, schließen Sie es, und versuchen Sie es erneut.</translation>
    </message>
    <message>
        <source>Checking these arguments against the tool&apos;s schema takes too long.</source>
        <translation>Diese Argumente anhand des Schemas des Werkzeugs zu prüfen, dauert zu lange.</translation>
    </message>
    <message>
        <source>Choose a data folder on a disk of this computer: desktop-agent --data-dir FOLDER.</source>
        <translation>Wählen Sie einen Datenordner auf einem Datenträger dieses Computers: desktop-agent --data-dir ORDNER.</translation>
    </message>
    <message>
        <source>Choose a file whose name ends in .gguf, or download it again.</source>
        <translation>Wählen Sie eine Datei, deren Name auf .gguf endet, oder laden Sie sie erneut herunter.</translation>
    </message>
    <message>
        <source>Choose a folder first, or another scope.</source>
        <translation>Wählen Sie erst einen Ordner, oder einen anderen Geltungsbereich.</translation>
    </message>
    <message>
        <source>Choose a folder that a backup has written.</source>
        <translation>Wählen Sie einen Ordner, den eine Sicherung geschrieben hat.</translation>
    </message>
    <message>
        <source>Choose a folder with a shorter path.</source>
        <translation>Wählen Sie einen Ordner mit kürzerem Pfad.</translation>
    </message>
    <message>
        <source>Choose a message of your own.</source>
        <translation>Wählen Sie eine eigene Nachricht.</translation>
    </message>
    <message>
        <source>Choose a model first.</source>
        <translation>Wählen Sie erst ein Modell.</translation>
    </message>
    <message>
        <source>Choose a model that calls tools, or turn tools off.</source>
        <translation>Wählen Sie ein Modell, das Werkzeuge aufruft, oder schalten Sie Werkzeuge ab.</translation>
    </message>
    <message>
        <source>Choose a model that reads pictures, or remove them.</source>
        <translation>Wählen Sie ein Modell, das Bilder liest, oder entfernen Sie sie.</translation>
    </message>
    <message>
        <source>Choose an answer or write one.</source>
        <translation>Wählen Sie einen Vorschlag, oder schreiben Sie etwas.</translation>
    </message>
    <message>
        <source>Choose an answer.</source>
        <translation>Wählen Sie eine Antwort.</translation>
    </message>
    <message>
        <source>Choose another file.</source>
        <translation>Wählen Sie eine andere Datei.</translation>
    </message>
    <message>
        <source>Choose another folder for the conversation, or make this one again.</source>
        <translation>Wählen Sie einen anderen Ordner für die Unterhaltung, oder legen Sie diesen wieder an.</translation>
    </message>
    <message>
        <source>Choose another folder.</source>
        <translation>Wählen Sie einen anderen Ordner.</translation>
    </message>
    <message>
        <source>Choose another model or server: the program has a fault in its connection to this one.</source>
        <translation>Wählen Sie ein anderes Modell oder einen anderen Server: Die Anbindung des Programms an diesen hat einen Fehler.</translation>
    </message>
    <message>
        <source>Choose another model, or ask in words.</source>
        <translation>Wählen Sie ein anderes Modell, oder fragen Sie mit Worten.</translation>
    </message>
    <message>
        <source>Choose another model, or ask the account&apos;s owner for access.</source>
        <translation>Wählen Sie ein anderes Modell, oder bitten Sie den Inhaber des Kontos um Zugang.</translation>
    </message>
    <message>
        <source>Choose another model, or check the server&apos;s address.</source>
        <translation>Wählen Sie ein anderes Modell, oder prüfen Sie die Adresse des Servers.</translation>
    </message>
    <message>
        <source>Choose another model, or choose the file again.</source>
        <translation>Wählen Sie ein anderes Modell, oder wählen Sie die Datei erneut.</translation>
    </message>
    <message>
        <source>Choose another model, or the API “OpenAI Responses” for this server.</source>
        <translation>Wählen Sie ein anderes Modell, oder für diesen Server die Schnittstelle „OpenAI Responses“.</translation>
    </message>
    <message>
        <source>Choose another model, the API “OpenAI Responses” for this server, or turn tools off.</source>
        <translation>Wählen Sie ein anderes Modell, für diesen Server die Schnittstelle „OpenAI Responses“, oder schalten Sie Werkzeuge ab.</translation>
    </message>
    <message>
        <source>Choose another model.</source>
        <translation>Wählen Sie ein anderes Modell.</translation>
    </message>
    <message>
        <source>Choose another name for the copy.</source>
        <translation>Wählen Sie einen anderen Namen für die Kopie.</translation>
    </message>
    <message>
        <source>Choose another name, or allow replacing it.</source>
        <translation>Wählen Sie einen anderen Namen, oder erlauben Sie das Ersetzen.</translation>
    </message>
    <message>
        <source>Choose another name, or another folder.</source>
        <translation>Wählen Sie einen anderen Namen oder einen anderen Ordner.</translation>
    </message>
    <message>
        <source>Choose another name, or set replace.</source>
        <translation>Wählen Sie einen anderen Namen, oder setzen Sie replace.</translation>
    </message>
    <message>
        <source>Choose another one.</source>
        <translation>Wählen Sie etwas anderes.</translation>
    </message>
    <message>
        <source>Choose one from the list.</source>
        <translation>Wählen Sie einen Eintrag der Liste.</translation>
    </message>
    <message>
        <source>Choose one of the modes.</source>
        <translation>Wählen Sie einen der Modi.</translation>
    </message>
    <message>
        <source>Choose one of the rules that were shown.</source>
        <translation>Wählen Sie eine der gezeigten Regeln.</translation>
    </message>
    <message>
        <source>Choose one of them.</source>
        <translation>Wählen Sie eine davon.</translation>
    </message>
    <message>
        <source>Choose one of: anthropic, gemini, openai-chat, openai-responses.</source>
        <translation>Wählen Sie eines von: anthropic, gemini, openai-chat, openai-responses.</translation>
    </message>
    <message>
        <source>Choose one that is shown.</source>
        <translation>Wählen Sie etwas, das gezeigt wird.</translation>
    </message>
    <message>
        <source>Choose only one.</source>
        <translation>Wählen Sie nur einen Vorschlag.</translation>
    </message>
    <message>
        <source>Choose the archive, the folder or the conversations.json of an export.</source>
        <translation>Wählen Sie das Archiv, den Ordner oder die conversations.json eines Exports.</translation>
    </message>
    <message>
        <source>Choose the file of the model itself.</source>
        <translation>Wählen Sie die Datei des Modells selbst.</translation>
    </message>
    <message>
        <source>Choose the file or the folder of an export.</source>
        <translation>Wählen Sie die Datei oder den Ordner eines Exports.</translation>
    </message>
    <message>
        <source>Choose the folder again if that is right, or another one.</source>
        <translation>Wählen Sie den Ordner erneut, wenn das richtig ist, oder einen anderen.</translation>
    </message>
    <message>
        <source>Choose the folder of the export alone.</source>
        <translation>Wählen Sie nur den Ordner des Exports.</translation>
    </message>
    <message>
        <source>Choose the name of a file in it.</source>
        <translation>Wählen Sie den Namen einer Datei darin.</translation>
    </message>
    <message>
        <source>Choose the name of a file.</source>
        <translation>Wählen Sie den Namen einer Datei.</translation>
    </message>
    <message>
        <source>Choose the name of a folder.</source>
        <translation>Wählen Sie den Namen eines Ordners.</translation>
    </message>
    <message>
        <source>Close it, or begin the run there.</source>
        <translation>Schließen Sie ihn, oder beginnen Sie den Lauf dort.</translation>
    </message>
    <message>
        <source>Close it, then start again.</source>
        <translation>Schließen Sie es, und starten Sie dann neu.</translation>
    </message>
    <message>
        <source>Close it, then try again.</source>
        <translation>Schließen Sie es, und versuchen Sie es dann erneut.</translation>
    </message>
    <message>
        <source>Close other windows of the program that do not answer, then try again.</source>
        <translation>Schließen Sie andere Fenster des Programms, die nicht antworten, und versuchen Sie es dann erneut.</translation>
    </message>
    <message>
        <source>Close the other window of this program and try again.</source>
        <translation>Schließen Sie das andere Fenster dieses Programms, und versuchen Sie es erneut.</translation>
    </message>
    <message>
        <source>Close the program and start it again. Nothing is saved until then.</source>
        <translation>Schließen Sie das Programm, und starten Sie es neu. Bis dahin wird nichts gespeichert.</translation>
    </message>
    <message>
        <source>Close the program and start it again: it sets the damaged file aside and carries over what can be read.</source>
        <translation>Schließen Sie das Programm, und starten Sie es neu: Es legt die beschädigte Datei beiseite und übernimmt, was sich lesen lässt.</translation>
    </message>
    <message>
        <source>Compacting needs {needed} of free room on the disk of “{folder}”.</source>
        <translation>Verdichten braucht {needed} freien Platz auf dem Datenträger von „{folder}“.</translation>
    </message>
    <message>
        <source>Confined by {name}.</source>
        <translation>Abgeschottet durch {name}.</translation>
    </message>
    <message>
        <source>Connect a model first.</source>
        <translation>Verbinden Sie erst ein Modell.</translation>
    </message>
    <message>
        <source>Content from {outsider} and {count} more came into this conversation. It may try to mislead the model, so you are asked about calls that could send data or run something, even if a rule allows them.</source>
        <translation>Inhalte von {outsider} und aus weiteren Quellen ({count}) kamen in diese Unterhaltung. Sie könnten das Modell in die Irre führen; daher werden Sie nach Aufrufen gefragt, die Daten senden oder etwas ausführen könnten, auch wenn eine Regel sie erlaubt.</translation>
    </message>
    <message>
        <source>Content from {outsider} came into this conversation. It may try to mislead the model, so you are asked about calls that could send data or run something, even if a rule allows them.</source>
        <translation>Inhalte von {outsider} kamen in diese Unterhaltung. Sie könnten das Modell in die Irre führen; daher werden Sie nach Aufrufen gefragt, die Daten senden oder etwas ausführen könnten, auch wenn eine Regel sie erlaubt.</translation>
    </message>
    <message>
        <source>Content from {source} came in. You are asked again about calls that could send data or run something, even if a rule allows them.</source>
        <translation>Inhalte von {source} kamen herein. Sie werden wieder nach Aufrufen gefragt, die Daten senden oder etwas ausführen könnten, auch wenn eine Regel sie erlaubt.</translation>
    </message>
    <message>
        <source>Content of the kind “{kind}” is not known and was kept as it is.</source>
        <translation>Inhalt der Art „{kind}“ ist nicht bekannt und blieb unverändert erhalten.</translation>
    </message>
    <message>
        <source>Content that this version does not know was kept as it is.</source>
        <translation>Inhalt, den diese Version nicht kennt, blieb unverändert erhalten.</translation>
    </message>
    <message>
        <source>Continue it here to send something.</source>
        <translation>Setzen Sie sie hier fort, um etwas zu senden.</translation>
    </message>
    <message>
        <source>Conversations compressed with zstd (.jsonl.zst), which this program cannot unpack. Unpack them with “zstd -d” first.</source>
        <translation>Mit zstd gepackte Unterhaltungen (.jsonl.zst), die dieses Programm nicht entpacken kann. Entpacken Sie sie vorher mit „zstd -d“.</translation>
    </message>
    <message>
        <source>Converted from {format} to PNG.</source>
        <translation>Von {format} in PNG umgewandelt.</translation>
    </message>
    <message>
        <source>Copy it again, without line breaks.</source>
        <translation>Kopieren Sie es noch einmal, ohne Zeilenumbrüche.</translation>
    </message>
    <message>
        <source>Copy its text into the message, or attach pictures of its pages.</source>
        <translation>Kopieren Sie den Text daraus in die Nachricht, oder hängen Sie Bilder der Seiten an.</translation>
    </message>
    <message>
        <source>Copy only the part with “mcpServers”.</source>
        <translation>Kopieren Sie nur den Teil mit „mcpServers“.</translation>
    </message>
    <message>
        <source>Copy the details and report what you did.</source>
        <translation>Kopieren Sie die Einzelheiten, und berichten Sie, was Sie getan haben.</translation>
    </message>
    <message>
        <source>Copy the details to see what the server said, or choose another model.</source>
        <translation>Kopieren Sie die Einzelheiten, um zu sehen, was der Server gemeldet hat, oder wählen Sie ein anderes Modell.</translation>
    </message>
    <message>
        <source>Copy the key again, without line breaks.</source>
        <translation>Kopieren Sie den Schlüssel noch einmal, ohne Zeilenumbrüche.</translation>
    </message>
    <message>
        <source>Copy the whole of it again, from the first to the last brace.</source>
        <translation>Kopieren Sie alles noch einmal, von der ersten bis zur letzten geschweiften Klammer.</translation>
    </message>
    <message>
        <source>Correct it and import again.</source>
        <translation>Berichtigen Sie ihn, und importieren Sie noch einmal.</translation>
    </message>
    <message>
        <source>Correct it in the system&apos;s settings or in the environment (http_proxy, https_proxy, all_proxy).</source>
        <translation>Berichtigen Sie es in den Systemeinstellungen oder in der Umgebung (http_proxy, https_proxy, all_proxy).</translation>
    </message>
    <message>
        <source>Correct it, or look for plain text.</source>
        <translation>Berichtigen Sie es, oder suchen Sie nach einfachem Text.</translation>
    </message>
    <message>
        <source>Correct its address, or allow the host in the settings of the network.</source>
        <translation>Berichtigen Sie die Adresse, oder erlauben Sie den Host in den Einstellungen des Netzwerks.</translation>
    </message>
    <message>
        <source>Correct its command with Edit: it must speak MCP over stdio.</source>
        <translation>Berichtigen Sie den Befehl mit „Bearbeiten“: Er muss MCP über stdio sprechen.</translation>
    </message>
    <message>
        <source>Correct or unset SSL_CERT_FILE and SSL_CERT_DIR. If neither is set, repair the system&apos;s certificates.</source>
        <translation>Berichtigen Sie SSL_CERT_FILE und SSL_CERT_DIR, oder entfernen Sie beide Variablen. Ist keine gesetzt, reparieren Sie die Zertifikate des Systems.</translation>
    </message>
    <message>
        <source>Correct the address with Edit, or ask the operator of the server.</source>
        <translation>Berichtigen Sie die Adresse mit „Bearbeiten“, oder fragen Sie den Betreiber.</translation>
    </message>
    <message>
        <source>Correct the call and try again.</source>
        <translation>Berichtigen Sie den Aufruf, und versuchen Sie es erneut.</translation>
    </message>
    <message>
        <source>Correct the call, or do without it.</source>
        <translation>Berichtigen Sie den Aufruf, oder kommen Sie ohne ihn aus.</translation>
    </message>
    <message>
        <source>Correct the call, or look at the server&apos;s log.</source>
        <translation>Berichtigen Sie den Aufruf, oder sehen Sie im Protokoll des Servers nach.</translation>
    </message>
    <message>
        <source>Correct the server&apos;s command and its arguments with Edit.</source>
        <translation>Berichtigen Sie den Befehl des Servers und seine Argumente mit „Bearbeiten“.</translation>
    </message>
    <message>
        <source>Damaged or unfinished entries.</source>
        <translation>Beschädigte oder unvollständige Einträge.</translation>
    </message>
    <message>
        <source>Decide about them first, then delete.</source>
        <translation>Entscheiden Sie erst darüber, und löschen Sie dann.</translation>
    </message>
    <message>
        <source>Default</source>
        <translation>Standard</translation>
    </message>
    <message>
        <source>Delete a file</source>
        <translation>Datei löschen</translation>
    </message>
    <message>
        <source>Delete it first.</source>
        <translation>Löschen Sie es erst.</translation>
    </message>
    <message>
        <source>Deletes the binary file “{path}” ({size} bytes).</source>
        <translation>Löscht die Binärdatei „{path}“ ({size} Byte).</translation>
    </message>
    <message>
        <source>Deletes the empty folder “{path}”.</source>
        <translation>Löscht den leeren Ordner „{path}“.</translation>
    </message>
    <message>
        <source>Deletes this picture ({size} bytes).</source>
        <translation>Löscht dieses Bild ({size} Byte).</translation>
    </message>
    <message>
        <source>Deletes “{path}” ({size} bytes).</source>
        <translation>Löscht „{path}“ ({size} Byte).</translation>
    </message>
    <message>
        <source>Deletes “{path}” ({size} bytes). It is too large to be kept, so this cannot be undone.</source>
        <translation>Löscht „{path}“ ({size} Byte). Die Datei ist zu groß, um aufbewahrt zu werden; das lässt sich also nicht rückgängig machen.</translation>
    </message>
    <message>
        <source>Denied</source>
        <translation>Abgelehnt</translation>
    </message>
    <message>
        <source>Do it yourself.</source>
        <translation>Tun Sie es selbst.</translation>
    </message>
    <message>
        <source>Do not run it again for that; its program must be corrected.</source>
        <translation>Führen Sie es deshalb nicht noch einmal aus; sein Programm muss berichtigt werden.</translation>
    </message>
    <message>
        <source>Do that part yourself, or give the specialist everything that it needs in its context.</source>
        <translation>Erledigen Sie diesen Teil selbst, oder geben Sie dem Spezialisten in seinem Kontext alles, was er braucht.</translation>
    </message>
    <message>
        <source>Done</source>
        <translation>Fertig</translation>
    </message>
    <message>
        <source>Download the export again.</source>
        <translation>Laden Sie den Export noch einmal herunter.</translation>
    </message>
    <message>
        <source>Download the missing file into the same folder.</source>
        <translation>Laden Sie die fehlende Datei in denselben Ordner herunter.</translation>
    </message>
    <message>
        <source>Duplicate entries.</source>
        <translation>Doppelte Einträge.</translation>
    </message>
    <message>
        <source>Edit a file</source>
        <translation>Datei bearbeiten</translation>
    </message>
    <message>
        <source>Edit the one that waits, or send a new one.</source>
        <translation>Bearbeiten Sie die wartende, oder senden Sie eine neue.</translation>
    </message>
    <message>
        <source>End with what is missing, so that your caller can ask.</source>
        <translation>Enden Sie mit dem, was fehlt, damit der Aufrufende fragen kann.</translation>
    </message>
    <message>
        <source>Ended at a limit</source>
        <translation>An einer Grenze beendet</translation>
    </message>
    <message>
        <source>Ends of lists that are too long.</source>
        <translation>Enden von Listen, die zu lang sind.</translation>
    </message>
    <message>
        <source>Enter an API key for this server.</source>
        <translation>Geben Sie einen API-Schlüssel für diesen Server ein.</translation>
    </message>
    <message>
        <source>Enter it again in the settings of the server.</source>
        <translation>Geben Sie es in den Einstellungen des Servers neu ein.</translation>
    </message>
    <message>
        <source>Enter the base URL of the API, for example http://127.0.0.1:11434/v1.</source>
        <translation>Geben Sie die Basis-URL der API ein, zum Beispiel http://127.0.0.1:11434/v1.</translation>
    </message>
    <message>
        <source>Entries of an unknown kind ({name}).</source>
        <translation>Einträge unbekannter Art ({name}).</translation>
    </message>
    <message>
        <source>Entries that are too long.</source>
        <translation>Einträge, die zu lang sind.</translation>
    </message>
    <message>
        <source>Export or download it again.</source>
        <translation>Exportieren Sie es noch einmal, oder laden Sie es noch einmal herunter.</translation>
    </message>
    <message>
        <source>Failed</source>
        <translation>Fehlgeschlagen</translation>
    </message>
    <message>
        <source>Files are being put back just now.</source>
        <translation>Gerade werden Dateien zurückgesetzt.</translation>
    </message>
    <message>
        <source>Files of which only the beginning was read.</source>
        <translation>Dateien, von denen nur der Anfang gelesen wurde.</translation>
    </message>
    <message>
        <source>Files that cannot be read.</source>
        <translation>Dateien, die sich nicht lesen lassen.</translation>
    </message>
    <message>
        <source>Find files</source>
        <translation>Dateien finden</translation>
    </message>
    <message>
        <source>Folders can be {most} deep within one another.</source>
        <translation>Ordner können {most} Ebenen tief ineinander liegen.</translation>
    </message>
    <message>
        <source>Free some space and try again. Nothing that was saved is lost, and what is open stays open.</source>
        <translation>Schaffen Sie Platz, und versuchen Sie es erneut. Nichts Gespeichertes ist verloren, und was offen ist, bleibt offen.</translation>
    </message>
    <message>
        <source>Free some space, then try again. Nothing was changed.</source>
        <translation>Schaffen Sie Platz, und versuchen Sie es dann erneut. Nichts wurde geändert.</translation>
    </message>
    <message>
        <source>From {program}, read only.</source>
        <translation>Aus {program}, nur zum Lesen.</translation>
    </message>
    <message>
        <source>Functions are called by name, with values only.</source>
        <translation>Funktionen werden mit ihrem Namen aufgerufen, nur mit Werten.</translation>
    </message>
    <message>
        <source>Gemini does not read GIF pictures.</source>
        <translation>Gemini liest keine GIF-Bilder.</translation>
    </message>
    <message>
        <source>Gemini takes at most {count} stop sequences.</source>
        <translation>Gemini nimmt höchstens {count} Stoppfolgen an.</translation>
    </message>
    <message>
        <source>Give a pydantic model, a dataclass, a TypedDict, or a list or a union of these.</source>
        <translation>Geben Sie ein Pydantic-Modell, eine Dataclass, ein TypedDict oder eine Liste oder Vereinigung davon an.</translation>
    </message>
    <message>
        <source>Give at least one message.</source>
        <translation>Geben Sie mindestens eine Nachricht an.</translation>
    </message>
    <message>
        <source>Give dialect or base_url.</source>
        <translation>Geben Sie dialect oder base_url an.</translation>
    </message>
    <message>
        <source>Give each mode a name of its own.</source>
        <translation>Geben Sie jedem Modus einen eigenen Namen.</translation>
    </message>
    <message>
        <source>Give each result once.</source>
        <translation>Geben Sie jedes Ergebnis einmal.</translation>
    </message>
    <message>
        <source>Give every call its result first.</source>
        <translation>Geben Sie erst jedem Aufruf sein Ergebnis.</translation>
    </message>
    <message>
        <source>Give it another id.</source>
        <translation>Geben Sie ihr eine andere ID.</translation>
    </message>
    <message>
        <source>Give it more time with timeout_seconds, or let it do less at once.</source>
        <translation>Geben Sie ihm mit timeout_seconds mehr Zeit, oder lassen Sie ihn weniger auf einmal tun.</translation>
    </message>
    <message>
        <source>Give it one that begins with https://.</source>
        <translation>Geben Sie eine an, die mit https:// beginnt.</translation>
    </message>
    <message>
        <source>Give it to the server as a variable, under “env”.</source>
        <translation>Geben Sie es dem Server als Variable, unter „env“.</translation>
    </message>
    <message>
        <source>Give it under its own id.</source>
        <translation>Geben Sie es unter seiner eigenen ID.</translation>
    </message>
    <message>
        <source>Give it “command” or “url”.</source>
        <translation>Geben Sie „command“ oder „url“ an.</translation>
    </message>
    <message>
        <source>Give its folder with --workspace, and name the file in the prompt.</source>
        <translation>Geben Sie seinen Ordner mit --workspace an und nennen Sie die Datei im Prompt.</translation>
    </message>
    <message>
        <source>Give more of the text around the one that is meant, or set replace_all.</source>
        <translation>Geben Sie mehr vom Text um die gemeinte Stelle an, oder setzen Sie replace_all.</translation>
    </message>
    <message>
        <source>Give results before the conversation goes on.</source>
        <translation>Geben Sie Ergebnisse, bevor die Unterhaltung weitergeht.</translation>
    </message>
    <message>
        <source>Give results with add_tool_result().</source>
        <translation>Geben Sie Ergebnisse mit add_tool_result().</translation>
    </message>
    <message>
        <source>Give strings, numbers, lists and dicts.</source>
        <translation>Geben Sie Zeichenketten, Zahlen, Listen und Dicts.</translation>
    </message>
    <message>
        <source>Give the `id` of its ToolUse.</source>
        <translation>Geben Sie die `id` seines ToolUse an.</translation>
    </message>
    <message>
        <source>Give the function a parameter for each argument, and a default to each that may be left out.</source>
        <translation>Geben Sie der Funktion einen Parameter für jedes Argument, und einen Vorgabewert für jedes, das fehlen darf.</translation>
    </message>
    <message>
        <source>Give the id of a call that was handed out.</source>
        <translation>Geben Sie die ID eines Aufrufs an, der herausgegeben wurde.</translation>
    </message>
    <message>
        <source>Give the results of all calls together.</source>
        <translation>Geben Sie die Ergebnisse aller Aufrufe zusammen.</translation>
    </message>
    <message>
        <source>Give the whole path of a program with Edit.</source>
        <translation>Geben Sie mit „Bearbeiten“ den ganzen Pfad eines Programms an.</translation>
    </message>
    <message>
        <source>Give them as a header, “Authorization”.</source>
        <translation>Geben Sie sie als Kopfzeile „Authorization“ an.</translation>
    </message>
    <message>
        <source>Give them types that JSON has, or a pydantic model, or give the tool a schema.</source>
        <translation>Geben Sie ihnen Typen, die JSON hat, oder ein Pydantic-Modell, oder geben Sie dem Werkzeug ein Schema.</translation>
    </message>
    <message>
        <source>Give turn_end or session_stop.</source>
        <translation>Geben Sie turn_end oder session_stop an.</translation>
    </message>
    <message>
        <source>Go on as it is, or begin a new conversation.</source>
        <translation>Machen Sie so weiter, oder beginnen Sie eine neue Unterhaltung.</translation>
    </message>
    <message>
        <source>Go on in the mode that holds.</source>
        <translation>Machen Sie im geltenden Modus weiter.</translation>
    </message>
    <message>
        <source>Go on without it, or call it again with another task.</source>
        <translation>Machen Sie ohne ihn weiter, oder rufen Sie ihn mit einer anderen Aufgabe erneut.</translation>
    </message>
    <message>
        <source>Go on without it.</source>
        <translation>Machen Sie ohne ihn weiter.</translation>
    </message>
    <message>
        <source>Go on.</source>
        <translation>Machen Sie weiter.</translation>
    </message>
    <message>
        <source>Hidden information about place, camera and time was removed.</source>
        <translation>Verborgene Angaben zu Ort, Kamera und Zeit wurden entfernt.</translation>
    </message>
    <message>
        <source>How hard “{model}” reasons cannot be chosen, so that was left out.</source>
        <translation>Wie gründlich „{model}“ nachdenkt, lässt sich nicht wählen, daher wurde das weggelassen.</translation>
    </message>
    <message>
        <source>If it happens again, look at its log.</source>
        <translation>Wenn es wieder geschieht, sehen Sie in seinem Protokoll nach.</translation>
    </message>
    <message>
        <source>If the server must be downloaded first, as with npx and uvx, run its command once in a terminal. Then press Test.</source>
        <translation>Muss er erst geladen werden, wie bei npx und uvx, führen Sie seinen Befehl einmal in einem Terminal aus; drücken Sie dann „Testen“.</translation>
    </message>
    <message>
        <source>If you trust that address, use it as this server&apos;s base URL.</source>
        <translation>Wenn Sie dieser Adresse vertrauen, verwenden Sie sie als Basis-URL dieses Servers.</translation>
    </message>
    <message>
        <source>Import at most {n} at a time.</source>
        <translation>Importieren Sie höchstens {n} auf einmal.</translation>
    </message>
    <message>
        <source>In your file “{name}”, line {line}, {place} was left out: {why}.</source>
        <translation>In Ihrer Datei „{name}“, Zeile {line}, wurde {place} weggelassen: {why}.</translation>
    </message>
    <message>
        <source>In your file “{name}”, {place} was left out: {why}.</source>
        <translation>In Ihrer Datei „{name}“ wurde {place} weggelassen: {why}.</translation>
    </message>
    <message>
        <source>Install bubblewrap to confine commands.</source>
        <translation>Installieren Sie bubblewrap, damit Befehle abgeschottet laufen.</translation>
    </message>
    <message>
        <source>Install it, or give its whole path with Edit.</source>
        <translation>Installieren Sie es, oder geben Sie mit „Bearbeiten“ seinen ganzen Pfad an.</translation>
    </message>
    <message>
        <source>Install llama.cpp (https://github.com/ggml-org/llama.cpp), so that there is a program llama-server.</source>
        <translation>Installieren Sie llama.cpp (https://github.com/ggml-org/llama.cpp), sodass es ein Programm llama-server gibt.</translation>
    </message>
    <message>
        <source>Install that program, or correct the first line.</source>
        <translation>Installieren Sie dieses Programm, oder berichtigen Sie die erste Zeile.</translation>
    </message>
    <message>
        <source>Install the newest version, and import it there.</source>
        <translation>Installieren Sie die neueste Version, und importieren Sie es dort.</translation>
    </message>
    <message>
        <source>Install the newest version, or start with another data folder.</source>
        <translation>Installieren Sie die neueste Version, oder starten Sie mit einem anderen Datenordner.</translation>
    </message>
    <message>
        <source>Instructions that are in a conversation, and are not shown in it, were kept.</source>
        <translation>Anweisungen, die in einer Unterhaltung stehen und darin nicht gezeigt werden, blieben erhalten.</translation>
    </message>
    <message>
        <source>Internal entries of the other program ({name}).</source>
        <translation>Interne Einträge des anderen Programms ({name}).</translation>
    </message>
    <message>
        <source>Interrupted</source>
        <translation>Unterbrochen</translation>
    </message>
    <message>
        <source>It can read those, the system, and your development tools with their caches and settings, but no other file of yours.</source>
        <translation>Er kann sie auch lesen, ebenso das System und Ihre Entwicklungswerkzeuge mit deren Caches und Einstellungen, aber keine andere Ihrer Dateien.</translation>
    </message>
    <message>
        <source>It can still change the permissions and dates of your other files, and what git and other programs run by themselves, without confinement, in the workspace; you are told if it did.</source>
        <translation>Er kann trotzdem die Rechte und Zeiten Ihrer anderen Dateien ändern und im Arbeitsordner das, was git und andere Programme von selbst ohne Abschottung ausführen; hat er es getan, erfahren Sie es.</translation>
    </message>
    <message>
        <source>It cannot change the hooks and settings of git that are in the workspace now, nor what other programs run by themselves there, but for the files that it names and those that git checks out.</source>
        <translation>Er kann die Hooks und Einstellungen von git, die jetzt im Arbeitsordner sind, nicht ändern, und auch nicht, was andere Programme dort von selbst ausführen, außer in Dateien, die er nennt, und in denen, die git auscheckt.</translation>
    </message>
    <message>
        <source>It has no network access.</source>
        <translation>Er hat keinen Netzzugang.</translation>
    </message>
    <message>
        <source>It is a binary file.</source>
        <translation>Es ist eine Binärdatei.</translation>
    </message>
    <message>
        <source>It is damaged: this is not JSON.</source>
        <translation>Es ist beschädigt: Das ist kein JSON.</translation>
    </message>
    <message>
        <source>It is nested too deeply.</source>
        <translation>Es ist zu tief verschachtelt.</translation>
    </message>
    <message>
        <source>It is not a conversation.</source>
        <translation>Es ist keine Unterhaltung.</translation>
    </message>
    <message>
        <source>It is not allowed for now.</source>
        <translation>Es ist vorerst nicht erlaubt.</translation>
    </message>
    <message>
        <source>It is not certain what this command would do.</source>
        <translation>Es ist nicht sicher, was dieser Befehl tun würde.</translation>
    </message>
    <message>
        <source>It is not clear what to import.</source>
        <translation>Es ist nicht klar, was importiert werden soll.</translation>
    </message>
    <message>
        <source>It is too large to be read.</source>
        <translation>Es ist zu groß, um gelesen zu werden.</translation>
    </message>
    <message>
        <source>It lacks something that a conversation must have, or its messages are out of order.</source>
        <translation>Es fehlt etwas, das eine Unterhaltung haben muss, oder ihre Nachrichten sind in falscher Reihenfolge.</translation>
    </message>
    <message>
        <source>It may have been deleted meanwhile. Choose another one.</source>
        <translation>Sie wurde vielleicht inzwischen gelöscht. Wählen Sie eine andere.</translation>
    </message>
    <message>
        <source>It may have been deleted meanwhile. Choose one that is shown.</source>
        <translation>Sie wurde vielleicht inzwischen gelöscht. Wählen Sie eine, die angezeigt wird.</translation>
    </message>
    <message>
        <source>It was set aside under another name, and what could be read was carried over.</source>
        <translation>Es wurde unter einem anderen Namen beiseitegelegt, und was sich lesen ließ, wurde übernommen.</translation>
    </message>
    <message>
        <source>It would remove or change everything on this computer, or everything of its user.</source>
        <translation>Es würde alles auf diesem Computer oder alles seines Benutzers löschen oder ändern.</translation>
    </message>
    <message>
        <source>It would start itself again and again until the computer stops responding.</source>
        <translation>Es würde sich selbst immer wieder starten, bis der Computer nicht mehr reagiert.</translation>
    </message>
    <message>
        <source>It would write directly to a disk, bypassing its file system.</source>
        <translation>Es würde an seinem Dateisystem vorbei auf einen Datenträger schreiben.</translation>
    </message>
    <message>
        <source>It would write where keys and passwords are kept.</source>
        <translation>Es würde dorthin schreiben, wo Schlüssel und Passwörter liegen.</translation>
    </message>
    <message>
        <source>It would write where this program keeps its own data.</source>
        <translation>Es würde dorthin schreiben, wo dieses Programm seine eigenen Daten hat.</translation>
    </message>
    <message>
        <source>Its HTML is broken, very large, or built to do harm; look for another page.</source>
        <translation>Ihr HTML ist fehlerhaft, sehr groß oder auf Schaden angelegt; suchen Sie eine andere Seite.</translation>
    </message>
    <message>
        <source>Its HTML is built to be slow or very large; look for another page.</source>
        <translation>Ihr HTML ist darauf angelegt, langsam oder sehr groß zu sein; suchen Sie eine andere Seite.</translation>
    </message>
    <message>
        <source>Its ids are not those of a conversation.</source>
        <translation>Ihre IDs sind nicht die einer Unterhaltung.</translation>
    </message>
    <message>
        <source>Its last run has not ended yet.</source>
        <translation>Der letzte Lauf ist noch nicht zu Ende.</translation>
    </message>
    <message>
        <source>Keys, passwords or what was typed may be kept there.</source>
        <translation>Dort können Schlüssel, Passwörter oder Eingaben liegen.</translation>
    </message>
    <message>
        <source>Label it with what it contains.</source>
        <translation>Bezeichnen Sie es als das, was es enthält.</translation>
    </message>
    <message>
        <source>Leave it out, and enter the key as API key.</source>
        <translation>Lassen Sie es weg, und geben Sie den Schlüssel als API-Schlüssel ein.</translation>
    </message>
    <message>
        <source>Limit reached</source>
        <translation>Grenze erreicht</translation>
    </message>
    <message>
        <source>Links, which are not followed.</source>
        <translation>Verknüpfungen, denen nicht gefolgt wird.</translation>
    </message>
    <message>
        <source>List files</source>
        <translation>Dateien auflisten</translation>
    </message>
    <message>
        <source>Load it only if you know this host: whoever wrote the text chose the address.</source>
        <translation>Laden Sie es nur, wenn Sie diesen Host kennen: Wer den Text geschrieben hat, hat die Adresse gewählt.</translation>
    </message>
    <message>
        <source>Look at a picture</source>
        <translation>Bild ansehen</translation>
    </message>
    <message>
        <source>Look at its log, correct it with Edit, then press Test.</source>
        <translation>Sehen Sie in seinem Protokoll nach, berichtigen Sie ihn mit „Bearbeiten“, und drücken Sie dann „Testen“.</translation>
    </message>
    <message>
        <source>Look at its log.</source>
        <translation>Sehen Sie in seinem Protokoll nach.</translation>
    </message>
    <message>
        <source>Look at the call&apos;s arguments.</source>
        <translation>Sehen Sie sich die Argumente des Aufrufs an.</translation>
    </message>
    <message>
        <source>Look at the list.</source>
        <translation>Sehen Sie sich die Liste an.</translation>
    </message>
    <message>
        <source>Look at the server&apos;s log.</source>
        <translation>Sehen Sie im Protokoll des Servers nach.</translation>
    </message>
    <message>
        <source>Look at what was said, then delete again.</source>
        <translation>Sehen Sie sich an, was gesagt wurde, und löschen Sie dann noch einmal.</translation>
    </message>
    <message>
        <source>Look for a page with text.</source>
        <translation>Suchen Sie eine Seite mit Text.</translation>
    </message>
    <message>
        <source>Look for a smaller page.</source>
        <translation>Suchen Sie eine kleinere Seite.</translation>
    </message>
    <message>
        <source>Look for another page.</source>
        <translation>Suchen Sie eine andere Seite.</translation>
    </message>
    <message>
        <source>Look for it in the system&apos;s list of processes.</source>
        <translation>Suchen Sie ihn in der Prozessliste des Systems.</translation>
    </message>
    <message>
        <source>Make a new one in each loop, and close each.</source>
        <translation>Legen Sie in jeder Schleife einen neuen an, und schließen Sie jeden.</translation>
    </message>
    <message>
        <source>Make a new one.</source>
        <translation>Legen Sie einen neuen an.</translation>
    </message>
    <message>
        <source>Make it executable, or name the program that runs it, such as python or sh, as the command.</source>
        <translation>Machen Sie es ausführbar, oder nennen Sie als Befehl das Programm, das es ausführt, etwa python oder sh.</translation>
    </message>
    <message>
        <source>Make it one with @tool.</source>
        <translation>Machen Sie es mit @tool zu einem.</translation>
    </message>
    <message>
        <source>Make it smaller and attach it again.</source>
        <translation>Verkleinern Sie es, und hängen Sie es noch einmal an.</translation>
    </message>
    <message>
        <source>Make it with Message.user(…) and the like.</source>
        <translation>Legen Sie es mit Message.user(…) und Ähnlichem an.</translation>
    </message>
    <message>
        <source>Make it with Message.user(…), or give a string.</source>
        <translation>Legen Sie es mit Message.user(…) an, oder geben Sie eine Zeichenkette.</translation>
    </message>
    <message>
        <source>Make it with Message.user(…), or give words to send().</source>
        <translation>Legen Sie es mit Message.user(…) an, oder geben Sie send() die Worte.</translation>
    </message>
    <message>
        <source>Make it with ToolResult(tool_use_id=…).</source>
        <translation>Legen Sie es mit ToolResult(tool_use_id=…) an.</translation>
    </message>
    <message>
        <source>Make it with these tools.</source>
        <translation>Legen Sie es mit diesen Werkzeugen an.</translation>
    </message>
    <message>
        <source>Make it, or choose another one.</source>
        <translation>Legen Sie ihn an, oder wählen Sie einen anderen.</translation>
    </message>
    <message>
        <source>Make messages of texts, pictures, calls and results, and of what can be written as JSON.</source>
        <translation>Bilden Sie Nachrichten aus Texten, Bildern, Aufrufen und Ergebnissen und aus dem, was sich als JSON schreiben lässt.</translation>
    </message>
    <message>
        <source>Make the folder writable, or choose another one.</source>
        <translation>Machen Sie den Ordner beschreibbar, oder wählen Sie einen anderen.</translation>
    </message>
    <message>
        <source>Make the options with auto_execute_tools=False, or do not.</source>
        <translation>Legen Sie die Optionen mit auto_execute_tools=False an, oder tun Sie es nicht.</translation>
    </message>
    <message>
        <source>Make them with AgentOptions(model=…).</source>
        <translation>Erstellen Sie sie mit AgentOptions(model=…).</translation>
    </message>
    <message>
        <source>Make them with Message.user(…) and the like.</source>
        <translation>Legen Sie sie mit Message.user(…) und Ähnlichem an.</translation>
    </message>
    <message>
        <source>Messages that name themselves as the message before; each begins a branch.</source>
        <translation>Nachrichten, die sich selbst als Vorgänger nennen; jede beginnt einen Zweig.</translation>
    </message>
    <message>
        <source>Messages wait to be sent.</source>
        <translation>Nachrichten warten darauf, gesendet zu werden.</translation>
    </message>
    <message>
        <source>Messages whose previous message is missing; they follow the one above them.</source>
        <translation>Nachrichten, deren Vorgänger fehlt; sie folgen der davor.</translation>
    </message>
    <message>
        <source>More was not understood; only the first kinds are listed.</source>
        <translation>Mehr wurde nicht verstanden; nur die ersten Arten davon sind aufgeführt.</translation>
    </message>
    <message>
        <source>Mount the disk, or let the link lead to where the files are now.</source>
        <translation>Hängen Sie den Datenträger ein, oder lassen Sie die Verknüpfung dorthin führen, wo die Dateien jetzt liegen.</translation>
    </message>
    <message>
        <source>Move a file</source>
        <translation>Datei verschieben</translation>
    </message>
    <message>
        <source>Move the file away, or choose another folder.</source>
        <translation>Verschieben Sie die Datei, oder wählen Sie einen anderen Ordner.</translation>
    </message>
    <message>
        <source>Moves “{source}”
to “{target}”.</source>
        <translation>Verschiebt „{source}“
nach „{target}“.</translation>
    </message>
    <message>
        <source>Moves “{source}”
to “{target}”.

This replaces what is there ({size} bytes).</source>
        <translation>Verschiebt „{source}“
nach „{target}“.

Das ersetzt, was dort ist ({size} Byte).</translation>
    </message>
    <message>
        <source>Name a conversation.</source>
        <translation>Nennen Sie eine Unterhaltung.</translation>
    </message>
    <message>
        <source>Name a file, or a program with --from.</source>
        <translation>Nennen Sie eine Datei, oder mit --from ein Programm.</translation>
    </message>
    <message>
        <source>Name files like *.py or src/**/*.py.</source>
        <translation>Nennen Sie Dateien wie *.py oder src/**/*.py.</translation>
    </message>
    <message>
        <source>Name it among them.</source>
        <translation>Nennen Sie es unter ihnen.</translation>
    </message>
    <message>
        <source>Name one of the options&apos; specialists.</source>
        <translation>Nennen Sie einen der Spezialisten der Optionen.</translation>
    </message>
    <message>
        <source>Name one of those that are installed.</source>
        <translation>Nennen Sie etwas, das installiert ist.</translation>
    </message>
    <message>
        <source>Name one of those that were added.</source>
        <translation>Nennen Sie etwas, das hinzugefügt wurde.</translation>
    </message>
    <message>
        <source>Name one of: {known}.</source>
        <translation>Nennen Sie eines von: {known}.</translation>
    </message>
    <message>
        <source>Name the file, and the file that it becomes.</source>
        <translation>Nennen Sie die Datei und die Datei, zu der sie wird.</translation>
    </message>
    <message>
        <source>Name the folder of the backups.</source>
        <translation>Nennen Sie den Ordner der Sicherungen.</translation>
    </message>
    <message>
        <source>Name the folder that has them with --data-dir.</source>
        <translation>Nennen Sie mit --data-dir den Ordner, der sie hat.</translation>
    </message>
    <message>
        <source>Name the program that runs it, such as python or sh, as the command.</source>
        <translation>Nennen Sie als Befehl das Programm, das es ausführt, etwa python oder sh.</translation>
    </message>
    <message>
        <source>Name words, or a filter: see `search --help`.</source>
        <translation>Nennen Sie Wörter oder einen Filter: siehe `search --help`.</translation>
    </message>
    <message>
        <source>Names of folders that were too long, too many or empty were cut.</source>
        <translation>Namen von Ordnern, die zu lang, zu viele oder leer waren, wurden gekürzt.</translation>
    </message>
    <message>
        <source>No address of this computer is free for the answer.</source>
        <translation>Keine Adresse dieses Computers ist frei für die Antwort.</translation>
    </message>
    <message>
        <source>No answer yet, {seconds} s.</source>
        <translation>Noch keine Antwort, {seconds} s.</translation>
    </message>
    <message>
        <source>No call waits for a result.</source>
        <translation>Kein Aufruf wartet auf ein Ergebnis.</translation>
    </message>
    <message>
        <source>No conversation has the tag “{tag}”.</source>
        <translation>Keine Unterhaltung hat das Schlagwort „{tag}“.</translation>
    </message>
    <message>
        <source>No conversation is stored with the id “{id}”.</source>
        <translation>Unter der ID „{id}“ ist keine Unterhaltung gespeichert.</translation>
    </message>
    <message>
        <source>No free port was found for the model.</source>
        <translation>Für das Modell wurde kein freier Port gefunden.</translation>
    </message>
    <message>
        <source>No histories of “{program}” can be read.</source>
        <translation>Verläufe von „{program}“ lassen sich nicht lesen.</translation>
    </message>
    <message>
        <source>No model could answer the server “{server}”: {why}
{remedy}</source>
        <translation>Kein Modell konnte dem Server „{server}“ antworten: {why}
{remedy}</translation>
    </message>
    <message>
        <source>No model is chosen for this conversation.</source>
        <translation>Für diese Unterhaltung ist kein Modell gewählt.</translation>
    </message>
    <message>
        <source>No model is chosen.</source>
        <translation>Es ist kein Modell gewählt.</translation>
    </message>
    <message>
        <source>No model is named.</source>
        <translation>Es ist kein Modell genannt.</translation>
    </message>
    <message>
        <source>No model server is set up yet.</source>
        <translation>Es ist noch kein Modellserver eingerichtet.</translation>
    </message>
    <message>
        <source>No prompt policy is called “{id}”.</source>
        <translation>Keine Prompt-Richtlinie heißt „{id}“.</translation>
    </message>
    <message>
        <source>No reasoning was asked for, because the model must call a tool.</source>
        <translation>Um Nachdenken wurde nicht gebeten, weil das Modell ein Werkzeug aufrufen muss.</translation>
    </message>
    <message>
        <source>Nobody is signed in to the server “{server}”.</source>
        <translation>Am Server „{server}“ ist niemand angemeldet.</translation>
    </message>
    <message>
        <source>Not confined: the command can read, change and send whatever you can.</source>
        <translation>Nicht abgeschottet: Der Befehl kann alles lesen, ändern und senden, was Sie können.</translation>
    </message>
    <message>
        <source>Not confined: this program runs as root, and no confinement holds root. Run it as an ordinary user, so that commands are confined.</source>
        <translation>Nicht abgeschottet: Dieses Programm läuft als root, und root hält keine Abschottung auf. Starten Sie es als gewöhnlicher Benutzer, damit Befehle abgeschottet laufen.</translation>
    </message>
    <message>
        <source>Not everything can be searched: less than 100 MB are free on this disk, too little for the index. Free some space.</source>
        <translation>Nicht alles lässt sich durchsuchen: Auf diesem Datenträger sind weniger als 100 MB frei, zu wenig für den Index. Schaffen Sie Platz.</translation>
    </message>
    <message>
        <source>Not everything can be searched: the data folder is write-protected, and the search keeps its index there. Make the folder writable, or open a writable copy of it.</source>
        <translation>Nicht alles lässt sich durchsuchen: Der Datenordner ist schreibgeschützt, und die Suche hat ihren Index darin. Machen Sie den Ordner beschreibbar, oder öffnen Sie eine beschreibbare Kopie davon.</translation>
    </message>
    <message>
        <source>Not everything can be searched: {why}</source>
        <translation>Nicht alles lässt sich durchsuchen: {why}</translation>
    </message>
    <message>
        <source>Not put back, because they were changed since: {paths}</source>
        <translation>Nicht zurückgesetzt, weil inzwischen geändert: {paths}</translation>
    </message>
    <message>
        <source>Not run: the tool “{name}” is another one now, it was changed after the call was made. Look at what it says of itself, then call again if it is still needed.</source>
        <translation>Nicht ausgeführt: Das Werkzeug „{name}“ ist jetzt ein anderes, es wurde nach dem Aufruf geändert. Sehen Sie nach, was es über sich sagt, und rufen Sie es dann erneut auf, wenn es noch gebraucht wird.</translation>
    </message>
    <message>
        <source>Not run: the tool “{name}” is no longer there. Either the server that offers it has ended. It is started when it is needed: call again. Or it was turned off or removed after the call was made: if it is missing then too, find another way, or have it turned on in the settings.</source>
        <translation>Nicht ausgeführt: Das Werkzeug „{name}“ ist nicht mehr da. Entweder läuft der Server nicht mehr, der es anbietet. Er wird bei Bedarf gestartet: Rufen Sie erneut auf. Oder es wurde nach dem Aufruf abgeschaltet oder entfernt: Fehlt es auch dann, finden Sie einen anderen Weg, oder lassen Sie es in den Einstellungen einschalten.</translation>
    </message>
    <message>
        <source>Noted in the file that was imported: {note}</source>
        <translation>In der importierten Datei vermerkt: {note}</translation>
    </message>
    <message>
        <source>Nothing could be summarised.</source>
        <translation>Nichts konnte zusammengefasst werden.</translation>
    </message>
    <message>
        <source>Nothing is lost.</source>
        <translation>Nichts ist verloren.</translation>
    </message>
    <message>
        <source>Nothing is saved until its content can be copied. Check the disk and its free space; the program tries again by itself.</source>
        <translation>Nichts wird gespeichert, bis der Inhalt kopiert werden kann. Prüfen Sie den Datenträger und seinen freien Platz; das Programm versucht es von selbst erneut.</translation>
    </message>
    <message>
        <source>Nothing on this system can hold the command to reading, so it was not run. Call again: the person is asked then.</source>
        <translation>Nichts auf diesem System kann den Befehl auf das Lesen beschränken, daher wurde er nicht ausgeführt. Rufen Sie erneut auf: Dann wird der Benutzer gefragt.</translation>
    </message>
    <message>
        <source>Nothing stands before the question, so there is nothing to keep.</source>
        <translation>Vor der Frage steht nichts, also gibt es nichts zu behalten.</translation>
    </message>
    <message>
        <source>Nothing was asked yet.</source>
        <translation>Noch wurde nichts gefragt.</translation>
    </message>
    <message>
        <source>Older messages were summarised for the model, to make room. You still see all of them.</source>
        <translation>Ältere Nachrichten wurden für das Modell zusammengefasst, um Platz zu schaffen. Sie sehen weiterhin alle.</translation>
    </message>
    <message>
        <source>Older pictures are not sent: this model takes fewer of them in one conversation.</source>
        <translation>Ältere Bilder werden nicht gesendet: Dieses Modell nimmt in einer Unterhaltung nicht so viele an.</translation>
    </message>
    <message>
        <source>On Windows nothing confines a command, so each one is asked about, and no rule can allow it.</source>
        <translation>Unter Windows laufen Befehle nicht abgeschottet; deshalb wird nach jedem gefragt, und keine Regel kann einen erlauben.</translation>
    </message>
    <message>
        <source>One event of the answer was damaged and could not be read. Something may be missing.</source>
        <translation>Ein Ereignis der Antwort war beschädigt und konnte nicht gelesen werden. Vielleicht fehlt etwas.</translation>
    </message>
    <message>
        <source>Only a message of the user can be asked.</source>
        <translation>Nur eine Nachricht des Benutzers kann gefragt werden.</translation>
    </message>
    <message>
        <source>Only a prompt can wait.</source>
        <translation>Nur ein Prompt kann warten.</translation>
    </message>
    <message>
        <source>Only answers can be regenerated.</source>
        <translation>Nur Antworten lassen sich neu generieren.</translation>
    </message>
    <message>
        <source>Only numbers can be computed.</source>
        <translation>Nur Zahlen können berechnet werden.</translation>
    </message>
    <message>
        <source>Only the choices are an answer to this question.</source>
        <translation>Nur die Vorschläge sind eine Antwort auf diese Frage.</translation>
    </message>
    <message>
        <source>Only the first of several frames is kept.</source>
        <translation>Nur das erste von mehreren Einzelbildern bleibt.</translation>
    </message>
    <message>
        <source>Only the name of an attached file is kept: the export does not contain the file.</source>
        <translation>Von einer angehängten Datei ist nur der Name erhalten: Der Export enthält die Datei nicht.</translation>
    </message>
    <message>
        <source>Only the person can allow this host, in Settings → Network. Ask them, or use a public server.</source>
        <translation>Nur der Benutzer kann diesen Host erlauben, unter Einstellungen → Netzwerk. Fragen Sie ihn, oder verwenden Sie einen öffentlichen Server.</translation>
    </message>
    <message>
        <source>Only the root agent can ask for another mode.</source>
        <translation>Nur der oberste Agent kann um einen anderen Modus bitten.</translation>
    </message>
    <message>
        <source>Only the root agent can ask the person.</source>
        <translation>Nur der oberste Agent kann den Benutzer fragen.</translation>
    </message>
    <message>
        <source>Only what you wrote can be edited.</source>
        <translation>Nur was Sie geschrieben haben, lässt sich bearbeiten.</translation>
    </message>
    <message>
        <source>Open another conversation there or close the window, then try again.</source>
        <translation>Öffnen Sie dort eine andere Unterhaltung, oder schließen Sie das Fenster, und versuchen Sie es dann erneut.</translation>
    </message>
    <message>
        <source>Open it again, and go on there.</source>
        <translation>Öffnen Sie sie wieder, und machen Sie dort weiter.</translation>
    </message>
    <message>
        <source>Open it in a browser.</source>
        <translation>Öffnen Sie es in einem Browser.</translation>
    </message>
    <message>
        <source>Open it in an image viewer, save it again and attach the copy.</source>
        <translation>Öffnen Sie es in einem Bildbetrachter, speichern Sie es neu, und hängen Sie die Kopie an.</translation>
    </message>
    <message>
        <source>Open the address in a browser.</source>
        <translation>Öffnen Sie die Adresse in einem Browser.</translation>
    </message>
    <message>
        <source>Open the conversation again; it is then as it is on the disk.</source>
        <translation>Öffnen Sie die Unterhaltung erneut; sie ist dann so wie auf dem Datenträger.</translation>
    </message>
    <message>
        <source>PNG, JPEG, GIF and WebP can be.</source>
        <translation>PNG, JPEG, GIF und WebP gehen.</translation>
    </message>
    <message>
        <source>Pictures from before are not sent: this model does not read them.</source>
        <translation>Bilder von vorher werden nicht gesendet: Dieses Modell liest sie nicht.</translation>
    </message>
    <message>
        <source>Pictures on the web are not sent: this server does not fetch them.</source>
        <translation>Bilder aus dem Web werden nicht gesendet: Dieser Server ruft sie nicht ab.</translation>
    </message>
    <message>
        <source>Pictures that are damaged, too large, or only named.</source>
        <translation>Bilder, die beschädigt, zu groß oder nur genannt sind.</translation>
    </message>
    <message>
        <source>Plan</source>
        <translation>Planen</translation>
    </message>
    <message>
        <source>Port {port} belongs to a service that is not the web.</source>
        <translation>Port {port} gehört zu einem Dienst, der nicht das Web ist.</translation>
    </message>
    <message>
        <source>Put Message.tool_results([...]) at the end.</source>
        <translation>Setzen Sie Message.tool_results([...]) ans Ende.</translation>
    </message>
    <message>
        <source>Put instructions, tools or earlier messages before it.</source>
        <translation>Stellen Sie Anweisungen, Werkzeuge oder frühere Nachrichten davor.</translation>
    </message>
    <message>
        <source>Put it somewhere else.</source>
        <translation>Legen Sie es woanders ab.</translation>
    </message>
    <message>
        <source>Put the file back by hand from a copy of your own.</source>
        <translation>Setzen Sie die Datei von Hand aus einer eigenen Kopie zurück.</translation>
    </message>
    <message>
        <source>Put the file back; nothing new is saved until then. Copy what you need from open conversations.</source>
        <translation>Legen Sie die Datei zurück; bis dahin wird nichts Neues gespeichert. Kopieren Sie aus offenen Unterhaltungen, was Sie brauchen.</translation>
    </message>
    <message>
        <source>Put them into the proxy&apos;s address, in the system&apos;s settings or in the environment (http_proxy, https_proxy, all_proxy): http://name:password@host:port.</source>
        <translation>Schreiben Sie sie in die Adresse des Proxys, in den Systemeinstellungen oder in der Umgebung (http_proxy, https_proxy, all_proxy): http://name:passwort@host:port.</translation>
    </message>
    <message>
        <source>Raise the budget in Settings, or ask anyway.</source>
        <translation>Erhöhen Sie das Budget in den Einstellungen, oder fragen Sie trotzdem.</translation>
    </message>
    <message>
        <source>Read a file</source>
        <translation>Datei lesen</translation>
    </message>
    <message>
        <source>Read a web page</source>
        <translation>Webseite lesen</translation>
    </message>
    <message>
        <source>Read it again.</source>
        <translation>Lesen Sie es noch einmal.</translation>
    </message>
    <message>
        <source>Read it in one task.</source>
        <translation>Lesen Sie es in einer Task.</translation>
    </message>
    <message>
        <source>Read it to its end, or stop it with interrupt() first.</source>
        <translation>Lesen Sie es bis zum Ende, oder halten Sie es erst mit interrupt() an.</translation>
    </message>
    <message>
        <source>Read the conversation with History.messages(), which has the bytes.</source>
        <translation>Lesen Sie die Unterhaltung mit History.messages(): Das hat die Bytes.</translation>
    </message>
    <message>
        <source>Read the file again and copy the text from it.</source>
        <translation>Lesen Sie die Datei noch einmal, und kopieren Sie den Text daraus.</translation>
    </message>
    <message>
        <source>Read the new messages, and send yours again if it still fits.</source>
        <translation>Lesen Sie die neuen Nachrichten, und senden Sie Ihre erneut, wenn sie noch passt.</translation>
    </message>
    <message>
        <source>Read them in one task.</source>
        <translation>Lesen Sie sie in einer Task.</translation>
    </message>
    <message>
        <source>Reading the page at “{address}” took longer than {seconds} seconds.</source>
        <translation>Die Seite unter „{address}“ zu lesen, dauerte länger als {seconds} Sekunden.</translation>
    </message>
    <message>
        <source>Reasoning cannot be switched off at the level “{level}”; the model reasons.</source>
        <translation>Auf der Stufe „{level}“ lässt sich das Nachdenken nicht abschalten; das Modell denkt nach.</translation>
    </message>
    <message>
        <source>Reasoning cannot be turned on or off here for “{model}”, so the model decides.</source>
        <translation>Nachdenken lässt sich hier für „{model}“ nicht ein- oder ausschalten, daher entscheidet das Modell.</translation>
    </message>
    <message>
        <source>Reasoning has levels here: {tokens} tokens became “{effort}”.</source>
        <translation>Nachdenken hat hier Stufen: Aus {tokens} Token wurde „{effort}“.</translation>
    </message>
    <message>
        <source>Reasoning only between calls cannot be asked for here, so the model decides.</source>
        <translation>Um Nachdenken nur zwischen Aufrufen lässt sich hier nicht bitten, daher entscheidet das Modell.</translation>
    </message>
    <message>
        <source>Reasoning starts with the next question: it cannot be switched on between tool calls.</source>
        <translation>Nachdenken beginnt mit der nächsten Frage: Zwischen Werkzeugaufrufen lässt es sich nicht einschalten.</translation>
    </message>
    <message>
        <source>Remove attachments or send smaller ones.</source>
        <translation>Entfernen Sie Anhänge, oder senden Sie kleinere.</translation>
    </message>
    <message>
        <source>Remove it first, or choose another id.</source>
        <translation>Entfernen Sie es erst, oder wählen Sie eine andere ID.</translation>
    </message>
    <message>
        <source>Remove it first, or choose another name.</source>
        <translation>Entfernen Sie es erst, oder wählen Sie einen anderen Namen.</translation>
    </message>
    <message>
        <source>Remove one of them.</source>
        <translation>Entfernen Sie eins von beiden.</translation>
    </message>
    <message>
        <source>Remove some of them.</source>
        <translation>Entfernen Sie einige davon.</translation>
    </message>
    <message>
        <source>Remove some, or make them smaller.</source>
        <translation>Entfernen Sie einige, oder verkleinern Sie sie.</translation>
    </message>
    <message>
        <source>Remove the part before the @.</source>
        <translation>Entfernen Sie den Teil vor dem @.</translation>
    </message>
    <message>
        <source>Replaces the binary file “{path}” ({size} bytes) with this text:

{text}</source>
        <translation>Ersetzt die Binärdatei „{path}“ ({size} Byte) durch diesen Text:

{text}</translation>
    </message>
    <message>
        <source>Replaces “{path}” ({size} characters) with this text:

{text}</source>
        <translation>Ersetzt „{path}“ ({size} Zeichen) durch diesen Text:

{text}</translation>
    </message>
    <message>
        <source>Restore into a new folder; then nothing can be overwritten.</source>
        <translation>Stellen Sie in einen neuen Ordner wieder her; dann kann nichts überschrieben werden.</translation>
    </message>
    <message>
        <source>Restore it first.</source>
        <translation>Holen Sie sie erst zurück.</translation>
    </message>
    <message>
        <source>Results of calls that are missing.</source>
        <translation>Ergebnisse von Aufrufen, die fehlen.</translation>
    </message>
    <message>
        <source>Return the answer; show progress by RunningCall.</source>
        <translation>Geben Sie die Antwort zurück; zeigen Sie Fortschritt mit RunningCall.</translation>
    </message>
    <message>
        <source>Rules that cannot be read and no longer apply: {count}. Check your rules, and add what is missing again.</source>
        <translation>Regeln, die sich nicht lesen lassen und nicht mehr gelten: {count}. Sehen Sie Ihre Regeln durch, und legen Sie neu an, was fehlt.</translation>
    </message>
    <message>
        <source>Rules that deny or ask and are only partly understood: {count}. They now apply to more calls than before. Check your rules, and add them again as you want them.</source>
        <translation>Regeln, die ablehnen oder fragen und nur zum Teil verstanden werden: {count}. Sie gelten für mehr Aufrufe als bisher. Sehen Sie Ihre Regeln durch, und legen Sie sie so an, wie Sie sie wollen.</translation>
    </message>
    <message>
        <source>Run a command</source>
        <translation>Befehl ausführen</translation>
    </message>
    <message>
        <source>Run its command in a terminal to see why; correct it with Edit, then press Test.</source>
        <translation>Führen Sie seinen Befehl in einem Terminal aus, um den Grund zu sehen; berichtigen Sie ihn mit „Bearbeiten“, und drücken Sie dann „Testen“.</translation>
    </message>
    <message>
        <source>Run pip install &apos;desktop-agent[{extra}]&apos;.</source>
        <translation>Führen Sie pip install &apos;desktop-agent[{extra}]&apos; aus.</translation>
    </message>
    <message>
        <source>Save a copy without the password, and attach that.</source>
        <translation>Speichern Sie eine Kopie ohne Passwort, und hängen Sie diese an.</translation>
    </message>
    <message>
        <source>Save it as UTF-8.</source>
        <translation>Speichern Sie sie als UTF-8.</translation>
    </message>
    <message>
        <source>Saved conversations can still be read. Saving continues by itself when the problem is solved.</source>
        <translation>Gespeicherte Unterhaltungen lassen sich weiterhin lesen. Das Speichern geht von selbst weiter, wenn das Problem behoben ist.</translation>
    </message>
    <message>
        <source>Say why it is needed and let the person change the mode.</source>
        <translation>Sagen Sie, warum es nötig ist, und lassen Sie den Benutzer den Modus wechseln.</translation>
    </message>
    <message>
        <source>Scaled from {before} to {after} pixels: models take up to {limit} pixels on the longer edge.</source>
        <translation>Von {before} auf {after} Pixel verkleinert: Modelle nehmen bis zu {limit} Pixel an der längeren Seite an.</translation>
    </message>
    <message>
        <source>Scroll up to it, then ask again.</source>
        <translation>Scrollen Sie zu ihr hinauf, und fragen Sie dann erneut.</translation>
    </message>
    <message>
        <source>Search in files</source>
        <translation>In Dateien suchen</translation>
    </message>
    <message>
        <source>Select two conversations or more.</source>
        <translation>Wählen Sie zwei oder mehr Unterhaltungen aus.</translation>
    </message>
    <message>
        <source>Send a message of the person.</source>
        <translation>Senden Sie eine Nachricht des Benutzers.</translation>
    </message>
    <message>
        <source>Send it again as a new message if it is still needed.</source>
        <translation>Senden Sie sie als neue Nachricht erneut, wenn sie noch gebraucht wird.</translation>
    </message>
    <message>
        <source>Send the message again: the model is then loaded again.</source>
        <translation>Senden Sie die Nachricht erneut: Das Modell wird dann neu geladen.</translation>
    </message>
    <message>
        <source>Send the same words as a new message.</source>
        <translation>Senden Sie dieselben Worte als neue Nachricht.</translation>
    </message>
    <message>
        <source>Send them or remove them, then edit the earlier one.</source>
        <translation>Senden oder entfernen Sie sie, und bearbeiten Sie dann die frühere.</translation>
    </message>
    <message>
        <source>Shorten it.</source>
        <translation>Kürzen Sie sie.</translation>
    </message>
    <message>
        <source>Shorten them.</source>
        <translation>Kürzen Sie sie.</translation>
    </message>
    <message>
        <source>Sign in again in the settings of the server.</source>
        <translation>Melden Sie sich in den Einstellungen des Servers neu an.</translation>
    </message>
    <message>
        <source>Sign in again.</source>
        <translation>Melden Sie sich neu an.</translation>
    </message>
    <message>
        <source>Something went wrong inside the program ({kind}).</source>
        <translation>Im Programm ist etwas schiefgegangen ({kind}).</translation>
    </message>
    <message>
        <source>Start a new conversation, or choose a model with a larger context.</source>
        <translation>Beginnen Sie eine neue Unterhaltung, oder wählen Sie ein Modell mit größerem Kontext.</translation>
    </message>
    <message>
        <source>Start a new conversation, or remove some of the pictures.</source>
        <translation>Beginnen Sie eine neue Unterhaltung, oder entfernen Sie einige der Bilder.</translation>
    </message>
    <message>
        <source>Start it again.</source>
        <translation>Starten Sie es erneut.</translation>
    </message>
    <message>
        <source>Start it, or correct its address with Edit; then press Test.</source>
        <translation>Starten Sie ihn, oder berichtigen Sie seine Adresse mit „Bearbeiten“; drücken Sie dann „Testen“.</translation>
    </message>
    <message>
        <source>Stopped</source>
        <translation>Angehalten</translation>
    </message>
    <message>
        <source>Submit results when ToolCallsRequested has come.</source>
        <translation>Geben Sie Ergebnisse, wenn ToolCallsRequested gekommen ist.</translation>
    </message>
    <message>
        <source>Submit the results of all calls together.</source>
        <translation>Geben Sie die Ergebnisse aller Aufrufe zusammen.</translation>
    </message>
    <message>
        <source>Summaries of older messages, which are all here.</source>
        <translation>Zusammenfassungen älterer Nachrichten, die alle hier sind.</translation>
    </message>
    <message>
        <source>Tags are given in the window.</source>
        <translation>Schlagwörter werden im Fenster vergeben.</translation>
    </message>
    <message>
        <source>Tags that were too long, too many or the same were left out or cut.</source>
        <translation>Schlagwörter, die zu lang, zu viele oder gleich waren, wurden weggelassen oder gekürzt.</translation>
    </message>
    <message>
        <source>The API key contains characters that no key can have.</source>
        <translation>Der API-Schlüssel hat Zeichen, die kein Schlüssel hat.</translation>
    </message>
    <message>
        <source>The API key was not accepted: {message}</source>
        <translation>Der API-Schlüssel wurde nicht angenommen: {message}</translation>
    </message>
    <message>
        <source>The address answered, but not like a model server: {message}</source>
        <translation>Die Adresse hat geantwortet, aber nicht wie ein Modellserver: {message}</translation>
    </message>
    <message>
        <source>The address carries a name or a password. Nothing of that kind is sent.</source>
        <translation>Die Adresse enthält einen Namen oder ein Passwort. Nichts dergleichen wird gesendet.</translation>
    </message>
    <message>
        <source>The address holds a user name or password.</source>
        <translation>Die Adresse enthält einen Benutzernamen oder ein Passwort.</translation>
    </message>
    <message>
        <source>The address is long: it may send data of the conversation to the server.</source>
        <translation>Die Adresse ist lang: Sie könnte Daten der Unterhaltung an den Server senden.</translation>
    </message>
    <message>
        <source>The address redirects without end.</source>
        <translation>Die Adresse leitet endlos weiter.</translation>
    </message>
    <message>
        <source>The agent changed the mode to “{mode}”.</source>
        <translation>Der Agent hat in den Modus „{mode}“ gewechselt.</translation>
    </message>
    <message>
        <source>The agent is at another turn by now.</source>
        <translation>Der Agent ist inzwischen bei einer anderen Runde.</translation>
    </message>
    <message>
        <source>The agent made this very call {count} times in a row.</source>
        <translation>Der Agent hat genau diesen Aufruf {count}-mal hintereinander gemacht.</translation>
    </message>
    <message>
        <source>The answer before is not finished.</source>
        <translation>Die Antwort davor ist nicht fertig.</translation>
    </message>
    <message>
        <source>The answer broke off before its end: {message}</source>
        <translation>Die Antwort brach vor ihrem Ende ab: {message}</translation>
    </message>
    <message>
        <source>The answer ended for a reason that this version does not know.</source>
        <translation>Die Antwort endete aus einem Grund, den diese Version nicht kennt.</translation>
    </message>
    <message>
        <source>The answer ended for a reason that this version does not know: “{reason}”.</source>
        <translation>Die Antwort endete aus einem Grund, den diese Version nicht kennt: „{reason}“.</translation>
    </message>
    <message>
        <source>The answer is empty.</source>
        <translation>Die Antwort ist leer.</translation>
    </message>
    <message>
        <source>The answer is longer than what is taken in.</source>
        <translation>Die Antwort ist länger als das, was angenommen wird.</translation>
    </message>
    <message>
        <source>The answer is longer than {limit} characters.</source>
        <translation>Die Antwort ist länger als {limit} Zeichen.</translation>
    </message>
    <message>
        <source>The answer of the server “{server}” is too large to be read; its work may have taken effect.</source>
        <translation>Die Antwort des Servers „{server}“ ist zu groß, um gelesen zu werden; seine Arbeit kann sich trotzdem ausgewirkt haben.</translation>
    </message>
    <message>
        <source>The answer of “{host}” does not describe a version.</source>
        <translation>Die Antwort von „{host}“ beschreibt keine Version.</translation>
    </message>
    <message>
        <source>The answer of “{host}” is packed in a way that cannot be read.</source>
        <translation>Die Antwort von „{host}“ ist so verpackt, dass sie sich nicht lesen lässt.</translation>
    </message>
    <message>
        <source>The answer of “{host}” is too large to describe a version.</source>
        <translation>Die Antwort von „{host}“ ist zu groß für die Beschreibung einer Version.</translation>
    </message>
    <message>
        <source>The answer so far is kept. Try again for a complete answer.</source>
        <translation>Die bisherige Antwort bleibt erhalten. Versuchen Sie es erneut für eine vollständige Antwort.</translation>
    </message>
    <message>
        <source>The answer&apos;s limit leaves no room for reasoning, so none was asked for.</source>
        <translation>Die Grenze der Antwort lässt keinen Platz zum Nachdenken, daher wurde nicht darum gebeten.</translation>
    </message>
    <message>
        <source>The arguments are nested too deep to be checked.</source>
        <translation>Die Argumente sind zu tief verschachtelt, um geprüft zu werden.</translation>
    </message>
    <message>
        <source>The arguments are not a JSON object, so the call was not run. Write them again.</source>
        <translation>Die Argumente sind kein JSON-Objekt, daher wurde der Aufruf nicht ausgeführt. Schreiben Sie sie neu.</translation>
    </message>
    <message>
        <source>The arguments cannot be checked against the tool&apos;s schema ({kind}).</source>
        <translation>Die Argumente lassen sich nicht anhand des Schemas des Werkzeugs prüfen ({kind}).</translation>
    </message>
    <message>
        <source>The arguments do not fit. {problems}</source>
        <translation>Die Argumente passen nicht. {problems}</translation>
    </message>
    <message>
        <source>The arguments of a tool are an object: its schema says “type”: “object”.</source>
        <translation>Die Argumente eines Werkzeugs sind ein Objekt: In seinem Schema steht „type“: „object“.</translation>
    </message>
    <message>
        <source>The budget for reasoning was changed to {tokens} tokens, which is what fits.</source>
        <translation>Das Budget zum Nachdenken wurde auf {tokens} Token geändert, denn so viel passt.</translation>
    </message>
    <message>
        <source>The budget of money for this month is used up.</source>
        <translation>Das Geldbudget für diesen Monat ist aufgebraucht.</translation>
    </message>
    <message>
        <source>The budget of money for today is used up.</source>
        <translation>Das Geldbudget für heute ist aufgebraucht.</translation>
    </message>
    <message>
        <source>The budget of tokens for this month is used up.</source>
        <translation>Das Token-Budget für diesen Monat ist aufgebraucht.</translation>
    </message>
    <message>
        <source>The budget of tokens for today is used up.</source>
        <translation>Das Token-Budget für heute ist aufgebraucht.</translation>
    </message>
    <message>
        <source>The cache lifetime of “{model}” cannot be chosen.</source>
        <translation>Die Lebensdauer des Caches von „{model}“ lässt sich nicht wählen.</translation>
    </message>
    <message>
        <source>The call could not be judged. {words}</source>
        <translation>Der Aufruf konnte nicht beurteilt werden. {words}</translation>
    </message>
    <message>
        <source>The call has no name, is incomplete, or may be a part of the one beside it, so it was not run. Call again, one at a time.</source>
        <translation>Der Aufruf hat keinen Namen, ist unvollständig oder ist vielleicht Teil des Aufrufs daneben, daher wurde er nicht ausgeführt. Rufen Sie erneut auf, einzeln nacheinander.</translation>
    </message>
    <message>
        <source>The call of “{tool}” was broken off, so it is not known whether it took effect.</source>
        <translation>Der Aufruf von „{tool}“ wurde abgebrochen, daher ist nicht bekannt, ob er gewirkt hat.</translation>
    </message>
    <message>
        <source>The call on “{path}” never ended, so it is not known who changed the file since. It was left as it is.</source>
        <translation>Der Aufruf für „{path}“ endete nie, daher ist nicht bekannt, wer die Datei seither geändert hat. Sie blieb, wie sie ist.</translation>
    </message>
    <message>
        <source>The call was stopped before it did anything.</source>
        <translation>Der Aufruf wurde angehalten, bevor er etwas getan hat.</translation>
    </message>
    <message>
        <source>The command can reach only {hosts}.</source>
        <translation>Der Befehl erreicht nur {hosts}.</translation>
    </message>
    <message>
        <source>The command can use the whole network and the services of this computer: this system cannot limit it to the hosts that it names.</source>
        <translation>Der Befehl kann das ganze Netz und Dienste dieses Computers benutzen: Dieses System kann ihn nicht auf die Hosts beschränken, die er nennt.</translation>
    </message>
    <message>
        <source>The command can write only in the workspace and in a temporary folder of its own.</source>
        <translation>Der Befehl kann nur im Arbeitsordner und in einem eigenen temporären Ordner schreiben.</translation>
    </message>
    <message>
        <source>The command has a null character in it, which no command line can hold.</source>
        <translation>Der Befehl enthält ein Nullzeichen, das in keine Befehlszeile passt.</translation>
    </message>
    <message>
        <source>The command is too long for a command line.</source>
        <translation>Der Befehl ist zu lang für eine Befehlszeile.</translation>
    </message>
    <message>
        <source>The command ran longer than {seconds} s and was ended, with all that it had started. Until then it wrote:
{output}
{done}
</source>
        <translation>Der Befehl lief länger als {seconds} s und wurde beendet, mit allem, was er gestartet hatte. Bis dahin schrieb er:
{output}
{done}
</translation>
    </message>
    <message>
        <source>The content of “{file}” is run by {program} {when}, without any confinement.</source>
        <translation>Der Inhalt von „{file}“ wird ohne jede Abschottung ausgeführt: von {program}, {when}.</translation>
    </message>
    <message>
        <source>The conversation has become longer than this model can read.</source>
        <translation>Die Unterhaltung ist länger geworden, als dieses Modell lesen kann.</translation>
    </message>
    <message>
        <source>The conversation was changed meanwhile.</source>
        <translation>Die Unterhaltung wurde inzwischen geändert.</translation>
    </message>
    <message>
        <source>The conversation went on meanwhile.</source>
        <translation>Die Unterhaltung ging inzwischen weiter.</translation>
    </message>
    <message>
        <source>The conversations are in use by another program.</source>
        <translation>Die Unterhaltungen werden von einem anderen Programm benutzt.</translation>
    </message>
    <message>
        <source>The conversations cannot be compacted while another program has them open.</source>
        <translation>Die Unterhaltungen lassen sich nicht verdichten, solange ein anderes Programm sie geöffnet hat.</translation>
    </message>
    <message>
        <source>The conversations could not be read or written.</source>
        <translation>Die Unterhaltungen konnten nicht gelesen oder geschrieben werden.</translation>
    </message>
    <message>
        <source>The conversations in “{path}” are damaged.</source>
        <translation>Die Unterhaltungen in „{path}“ sind beschädigt.</translation>
    </message>
    <message>
        <source>The conversations in “{path}” were saved by a newer version.</source>
        <translation>Die Unterhaltungen in „{path}“ wurden von einer neueren Version gespeichert.</translation>
    </message>
    <message>
        <source>The copy “{path}” could not be verified and was removed.</source>
        <translation>Die Kopie „{path}“ ließ sich nicht überprüfen und wurde entfernt.</translation>
    </message>
    <message>
        <source>The disk is full; “{path}” was not written.</source>
        <translation>Der Datenträger ist voll; „{path}“ wurde nicht geschrieben.</translation>
    </message>
    <message>
        <source>The disk refused this for a while; it is saved now.</source>
        <translation>Der Datenträger hat das eine Weile verweigert; jetzt ist es gespeichert.</translation>
    </message>
    <message>
        <source>The effect of this call cannot be shown ({kind}).</source>
        <translation>Die Wirkung dieses Aufrufs lässt sich nicht anzeigen ({kind}).</translation>
    </message>
    <message>
        <source>The expression is not written in a way that can be computed.</source>
        <translation>Der Ausdruck ist nicht so geschrieben, dass er berechnet werden kann.</translation>
    </message>
    <message>
        <source>The expression uses something that this calculator does not know.</source>
        <translation>Der Ausdruck verwendet etwas, das dieser Rechner nicht kennt.</translation>
    </message>
    <message>
        <source>The file ends in the middle of it.</source>
        <translation>Die Datei endet mittendrin.</translation>
    </message>
    <message>
        <source>The file has {count} lines; there is no line {start}.</source>
        <translation>Die Datei endet mit Zeile {count}; eine Zeile {start} gibt es nicht.</translation>
    </message>
    <message>
        <source>The file system of “{folder}” has no locks, so two programs could write the same conversation at once.</source>
        <translation>Das Dateisystem von „{folder}“ hat keine Sperren, daher könnten zwei Programme gleichzeitig dieselbe Unterhaltung schreiben.</translation>
    </message>
    <message>
        <source>The file there is not a PNG, JPEG, GIF or WebP image.</source>
        <translation>Die Datei dort ist kein PNG-, JPEG-, GIF- oder WebP-Bild.</translation>
    </message>
    <message>
        <source>The folder of “{path}” cannot be written to.</source>
        <translation>In den Ordner von „{path}“ kann nicht geschrieben werden.</translation>
    </message>
    <message>
        <source>The format is not clear.</source>
        <translation>Das Format ist nicht klar.</translation>
    </message>
    <message>
        <source>The guard “{name}” was removed: {reason}</source>
        <translation>Der Wächter „{name}“ wurde entfernt: {reason}</translation>
    </message>
    <message>
        <source>The history is not open: use `async with History() as history`.</source>
        <translation>Der Verlauf ist nicht geöffnet: Verwenden Sie `async with History() as history`.</translation>
    </message>
    <message>
        <source>The instructions of this folder are too long.</source>
        <translation>Die Anweisungen dieses Ordners sind zu lang.</translation>
    </message>
    <message>
        <source>The key can be kept in memory until the program is closed.</source>
        <translation>Der Schlüssel kann bis zum Ende des Programms im Arbeitsspeicher bleiben.</translation>
    </message>
    <message>
        <source>The keyring could not be used.</source>
        <translation>Der Schlüsselbund konnte nicht benutzt werden.</translation>
    </message>
    <message>
        <source>The keyring does not answer; it may be waiting to be unlocked.</source>
        <translation>Der Schlüsselbund antwortet nicht; vielleicht wartet er darauf, entsperrt zu werden.</translation>
    </message>
    <message>
        <source>The keyring is locked.</source>
        <translation>Der Schlüsselbund ist gesperrt.</translation>
    </message>
    <message>
        <source>The last answer is complete, so there is nothing to try again.</source>
        <translation>Die letzte Antwort ist vollständig, daher gibt es nichts erneut zu versuchen.</translation>
    </message>
    <message>
        <source>The level of reasoning “{level}” is not taken here; “{sent}” was asked for instead.</source>
        <translation>Die Denkstufe „{level}“ wird hier nicht angenommen; stattdessen wurde um „{sent}“ gebeten.</translation>
    </message>
    <message>
        <source>The link “{path}” leads to nothing: its disk may not be mounted.</source>
        <translation>Die Verknüpfung „{path}“ führt ins Leere: Vielleicht ist ihr Datenträger nicht eingehängt.</translation>
    </message>
    <message>
        <source>The message is empty.</source>
        <translation>Die Nachricht ist leer.</translation>
    </message>
    <message>
        <source>The message was not sent: {reason}</source>
        <translation>Die Nachricht wurde nicht gesendet: {reason}</translation>
    </message>
    <message>
        <source>The mode stays “{mode}”.</source>
        <translation>Der Modus bleibt „{mode}“.</translation>
    </message>
    <message>
        <source>The mode “{mode}” denies calls that change something.</source>
        <translation>Der Modus „{mode}“ lehnt Aufrufe ab, die etwas ändern.</translation>
    </message>
    <message>
        <source>The mode “{title}” was removed, so “{now}” holds here. Choose another mode if you like.</source>
        <translation>Der Modus „{title}“ wurde entfernt, daher gilt hier „{now}“. Wählen Sie einen anderen Modus, wenn Sie möchten.</translation>
    </message>
    <message>
        <source>The mode “{title}” was removed. What it denied is still denied here, and you are asked about what it allowed. You can choose another mode at any time.</source>
        <translation>Der Modus „{title}“ wurde entfernt. Was er ablehnte, bleibt hier abgelehnt; nach dem, was er erlaubte, werden Sie gefragt. Sie können jederzeit einen anderen Modus wählen.</translation>
    </message>
    <message>
        <source>The model can go on from here.</source>
        <translation>Das Modell kann von hier aus weitermachen.</translation>
    </message>
    <message>
        <source>The model declined to answer.</source>
        <translation>Das Modell hat eine Antwort abgelehnt.</translation>
    </message>
    <message>
        <source>The model ended its answer without saying anything.</source>
        <translation>Das Modell hat seine Antwort beendet, ohne etwas zu sagen.</translation>
    </message>
    <message>
        <source>The model file “{model}” is no longer chosen.</source>
        <translation>Die Modelldatei „{model}“ ist nicht mehr ausgewählt.</translation>
    </message>
    <message>
        <source>The model is still working.</source>
        <translation>Das Modell arbeitet noch.</translation>
    </message>
    <message>
        <source>The model lacks the file “{name}”.</source>
        <translation>Dem Modell fehlt die Datei „{name}“.</translation>
    </message>
    <message>
        <source>The model server could not be reached: {message}</source>
        <translation>Der Modellserver war nicht erreichbar: {message}</translation>
    </message>
    <message>
        <source>The model server reported: {message}</source>
        <translation>Der Modellserver meldete: {message}</translation>
    </message>
    <message>
        <source>The model server took too long: {message}</source>
        <translation>Der Modellserver brauchte zu lange: {message}</translation>
    </message>
    <message>
        <source>The model wrote a call that its own server could not read.</source>
        <translation>Das Modell schrieb einen Aufruf, den sein eigener Server nicht lesen konnte.</translation>
    </message>
    <message>
        <source>The model&apos;s longest answer is {tokens} tokens, so no more were asked for.</source>
        <translation>Die längste Antwort des Modells ist {tokens} Token lang, daher wurde nicht um mehr gebeten.</translation>
    </message>
    <message>
        <source>The model&apos;s server sent something that is not JSON.</source>
        <translation>Der Server des Modells hat etwas gesendet, das kein JSON ist.</translation>
    </message>
    <message>
        <source>The model&apos;s server sent something that is not part of an answer ({kind}).</source>
        <translation>Der Server des Modells hat etwas gesendet, das kein Teil einer Antwort ist ({kind}).</translation>
    </message>
    <message>
        <source>The name is written with letters that may look like others; to the network it is {host}.</source>
        <translation>Der Name enthält Buchstaben, die wie andere aussehen können; für das Netz ist es {host}.</translation>
    </message>
    <message>
        <source>The name of “{path}” on the disk has bytes that are not text.</source>
        <translation>Der Name von „{path}“ auf dem Datenträger ist kein Text.</translation>
    </message>
    <message>
        <source>The name “{path}” is too long for this disk.</source>
        <translation>Der Name „{path}“ ist zu lang für diesen Datenträger.</translation>
    </message>
    <message>
        <source>The old text and the new text are the same; nothing would change.</source>
        <translation>Der alte und der neue Text sind gleich; nichts würde sich ändern.</translation>
    </message>
    <message>
        <source>The old text is in “{path}” {count} times, at {lines}.</source>
        <translation>Der alte Text steht {count}-mal in „{path}“, bei {lines}.</translation>
    </message>
    <message>
        <source>The old text is not in “{path}”.</source>
        <translation>Der alte Text steht nicht in „{path}“.</translation>
    </message>
    <message>
        <source>The oldest conversations of other programs are not searched, because there are too many of them.</source>
        <translation>Die ältesten Unterhaltungen anderer Programme werden nicht durchsucht, weil es zu viele sind.</translation>
    </message>
    <message>
        <source>The page at “{address}” could not be read.</source>
        <translation>Die Seite unter „{address}“ konnte nicht gelesen werden.</translation>
    </message>
    <message>
        <source>The page has {count} characters; there is no character {start}.</source>
        <translation>Die Seite hat {count} Zeichen; ein Zeichen {start} gibt es nicht.</translation>
    </message>
    <message>
        <source>The page is larger than {limit}.</source>
        <translation>Die Seite ist größer als {limit}.</translation>
    </message>
    <message>
        <source>The parameter “{name}” of the tool “{tool}” cannot be given by name.</source>
        <translation>Der Parameter „{name}“ des Werkzeugs „{tool}“ kann nicht mit Namen angegeben werden.</translation>
    </message>
    <message>
        <source>The parameter “{name}” of the tool “{tool}” has no type.</source>
        <translation>Der Parameter „{name}“ des Werkzeugs „{tool}“ hat keinen Typ.</translation>
    </message>
    <message>
        <source>The parameters of the tool “{tool}” cannot be written as JSON: {why}</source>
        <translation>Die Parameter des Werkzeugs „{tool}“ lassen sich nicht als JSON schreiben: {why}</translation>
    </message>
    <message>
        <source>The path “{path}” is too long for this system.</source>
        <translation>Der Pfad „{path}“ ist zu lang für dieses System.</translation>
    </message>
    <message>
        <source>The pattern of names is empty.</source>
        <translation>Das Namensmuster ist leer.</translation>
    </message>
    <message>
        <source>The pattern of names is too long or has too many stars in it.</source>
        <translation>Das Namensmuster ist zu lang oder hat zu viele Sterne.</translation>
    </message>
    <message>
        <source>The picture is damaged and cannot be read.</source>
        <translation>Das Bild ist beschädigt und lässt sich nicht lesen.</translation>
    </message>
    <message>
        <source>The picture is labelled {claimed} but contains {found}.</source>
        <translation>Das Bild ist als {claimed} bezeichnet, enthält aber {found}.</translation>
    </message>
    <message>
        <source>The picture is larger than {limit}.</source>
        <translation>Das Bild ist größer als {limit}.</translation>
    </message>
    <message>
        <source>The picture is not a PNG, JPEG, GIF or WebP image.</source>
        <translation>Das Bild ist kein PNG-, JPEG-, GIF- oder WebP-Bild.</translation>
    </message>
    <message>
        <source>The picture is stored elsewhere.</source>
        <translation>Das Bild liegt anderswo.</translation>
    </message>
    <message>
        <source>The picture “{name}”</source>
        <translation>Das Bild „{name}“</translation>
    </message>
    <message>
        <source>The picture “{name}” is damaged and cannot be read.</source>
        <translation>Das Bild „{name}“ ist beschädigt und lässt sich nicht lesen.</translation>
    </message>
    <message>
        <source>The picture “{name}” is larger than {limit}.</source>
        <translation>Das Bild „{name}“ ist größer als {limit}.</translation>
    </message>
    <message>
        <source>The picture “{name}” is not a PNG, JPEG, GIF or WebP image.</source>
        <translation>Das Bild „{name}“ ist kein PNG-, JPEG-, GIF- oder WebP-Bild.</translation>
    </message>
    <message>
        <source>The pictures of this conversation are together larger than 100 MB.</source>
        <translation>Die Bilder dieser Unterhaltung sind zusammen größer als 100 MB.</translation>
    </message>
    <message>
        <source>The program could not be ended.</source>
        <translation>Das Programm ließ sich nicht beenden.</translation>
    </message>
    <message>
        <source>The program that runs “{name}”, by its first line (#!), is not installed.</source>
        <translation>Das Programm, das „{name}“ laut seiner ersten Zeile (#!) ausführt, ist nicht installiert.</translation>
    </message>
    <message>
        <source>The program tries again by itself, in case the file is still being written. If that does not help, close the program and start it again: it then carries over what can be read.</source>
        <translation>Das Programm versucht es von selbst erneut, falls die Datei noch geschrieben wird. Hilft das nicht, schließen Sie das Programm, und starten Sie es neu: Es übernimmt dann, was sich lesen lässt.</translation>
    </message>
    <message>
        <source>The program was killed the last time, and “{log}”, which had the newest messages, was removed since then. Some messages may be missing.</source>
        <translation>Das Programm wurde beim letzten Mal gewaltsam beendet, und seither wurde „{log}“ entfernt, worin die neuesten Nachrichten standen. Einige fehlen vielleicht.</translation>
    </message>
    <message>
        <source>The program was not started, because its child processes could not be ended later ({function}).</source>
        <translation>Das Programm wurde nicht gestartet, weil sich seine Unterprozesse später nicht sicher beenden ließen ({function}).</translation>
    </message>
    <message>
        <source>The program works with the new file from now on.</source>
        <translation>Das Programm arbeitet ab jetzt mit der neuen Datei.</translation>
    </message>
    <message>
        <source>The program “{name}” could not be started: {why}.</source>
        <translation>Das Programm „{name}“ konnte nicht gestartet werden: {why}.</translation>
    </message>
    <message>
        <source>The program “{name}” may not be run.</source>
        <translation>Das Programm „{name}“ darf nicht ausgeführt werden.</translation>
    </message>
    <message>
        <source>The prompt before this answer is not in memory.</source>
        <translation>Der Prompt vor dieser Antwort ist nicht im Arbeitsspeicher.</translation>
    </message>
    <message>
        <source>The prompt is empty.</source>
        <translation>Der Prompt ist leer.</translation>
    </message>
    <message>
        <source>The provider&apos;s content filter withheld the rest of this answer.</source>
        <translation>Der Inhaltsfilter des Anbieters hat den Rest dieser Antwort zurückgehalten.</translation>
    </message>
    <message>
        <source>The proxy of this system does not connect to “{host}” ({status}).</source>
        <translation>Der Proxy dieses Systems stellt keine Verbindung zu „{host}“ her ({status}).</translation>
    </message>
    <message>
        <source>The proxy that is set has no usable address.</source>
        <translation>Der eingestellte Proxy hat keine brauchbare Adresse.</translation>
    </message>
    <message>
        <source>The proxy that is set is of a kind that is not supported ({kind}).</source>
        <translation>Der eingestellte Proxy ist von einer Art, die nicht unterstützt wird ({kind}).</translation>
    </message>
    <message>
        <source>The question is empty.</source>
        <translation>Die Frage ist leer.</translation>
    </message>
    <message>
        <source>The question was not answered.</source>
        <translation>Die Frage wurde nicht beantwortet.</translation>
    </message>
    <message>
        <source>The regular expression cannot be read: {why}.</source>
        <translation>Der reguläre Ausdruck lässt sich nicht lesen: {why}.</translation>
    </message>
    <message>
        <source>The request may be billed already, so it was not sent again by itself. Try again, or ask another server.</source>
        <translation>Die Anfrage wird vielleicht schon berechnet, daher wurde sie nicht von selbst erneut gesendet. Versuchen Sie es erneut, oder fragen Sie einen anderen Server.</translation>
    </message>
    <message>
        <source>The request may be billed already, so it was not sent again by itself. Try again, or raise the time limit in the settings if this model is slow to start.</source>
        <translation>Die Anfrage wird vielleicht schon berechnet, daher wurde sie nicht von selbst erneut gesendet. Versuchen Sie es erneut, oder erhöhen Sie das Zeitlimit in den Einstellungen, falls dieses Modell langsam anläuft.</translation>
    </message>
    <message>
        <source>The request names no host that can exist.</source>
        <translation>Die Anfrage nennt keinen Host, den es geben kann.</translation>
    </message>
    <message>
        <source>The request was not sent to “{host}”, because it contains a secret for another server.</source>
        <translation>Die Anfrage wurde nicht an „{host}“ gesendet, weil sie ein Geheimnis für einen anderen Server enthält.</translation>
    </message>
    <message>
        <source>The rest of this file is damaged and cannot be read.</source>
        <translation>Der Rest dieser Datei ist beschädigt und lässt sich nicht lesen.</translation>
    </message>
    <message>
        <source>The result is not a finite number.</source>
        <translation>Das Ergebnis ist keine endliche Zahl.</translation>
    </message>
    <message>
        <source>The result is not a real number.</source>
        <translation>Das Ergebnis ist keine reelle Zahl.</translation>
    </message>
    <message>
        <source>The results are missing.</source>
        <translation>Die Ergebnisse fehlen.</translation>
    </message>
    <message>
        <source>The rule could not be taken back and still holds: {why}</source>
        <translation>Die Regel ließ sich nicht zurücknehmen und gilt noch: {why}</translation>
    </message>
    <message>
        <source>The rules could not be applied to this call in time, so you decide.</source>
        <translation>Die Regeln ließen sich nicht rechtzeitig auf diesen Aufruf anwenden, deshalb entscheiden Sie.</translation>
    </message>
    <message>
        <source>The runtime runs these tools itself.</source>
        <translation>Die Runtime führt diese Werkzeuge selbst aus.</translation>
    </message>
    <message>
        <source>The saved conversations are damaged. What can be read of them is shown (conversations: {conversations}, messages: {messages}).</source>
        <translation>Die gespeicherten Unterhaltungen sind beschädigt. Was sich davon lesen lässt, wird gezeigt (Unterhaltungen: {conversations}, Nachrichten: {messages}).</translation>
    </message>
    <message>
        <source>The saved conversations must be repaired or upgraded, but {who} has them open.</source>
        <translation>Die gespeicherten Unterhaltungen müssen repariert oder aktualisiert werden, aber {who} hat sie geöffnet.</translation>
    </message>
    <message>
        <source>The saved conversations were checked; nothing is wrong with them.</source>
        <translation>Die gespeicherten Unterhaltungen wurden geprüft; es ist alles in Ordnung.</translation>
    </message>
    <message>
        <source>The saved conversations were damaged. The damaged file was kept as “{name}”; what could be read was carried over (conversations: {conversations}, messages: {messages}). If something is missing, a backup may have it: Settings → Storage.</source>
        <translation>Die gespeicherten Unterhaltungen waren beschädigt. Die beschädigte Datei wurde als „{name}“ aufbewahrt; was sich lesen ließ, wurde übernommen (Unterhaltungen: {conversations}, Nachrichten: {messages}). Fehlt etwas, hat es vielleicht eine Sicherung: Einstellungen → Speicher.</translation>
    </message>
    <message>
        <source>The schema of a tool and the parameters of its function do not fit: {names}.</source>
        <translation>Das Schema eines Werkzeugs und die Parameter seiner Funktion passen nicht zusammen: {names}.</translation>
    </message>
    <message>
        <source>The schema of a tool&apos;s arguments cannot be used: {why}.</source>
        <translation>Das Schema der Argumente eines Werkzeugs lässt sich nicht verwenden: {why}.</translation>
    </message>
    <message>
        <source>The search broke off before its end.</source>
        <translation>Die Suche brach vor ihrem Ende ab.</translation>
    </message>
    <message>
        <source>The server accepts only registered programs ({why}).</source>
        <translation>Der Server lässt nur angemeldete Programme zu ({why}).</translation>
    </message>
    <message>
        <source>The server asks for a wait of more than a week; choose another model or server.</source>
        <translation>Der Server bittet um mehr als eine Woche Wartezeit; wählen Sie ein anderes Modell oder einen anderen Server.</translation>
    </message>
    <message>
        <source>The server asks to wait {hours} hours; try again then.</source>
        <translation>Der Server bittet um {hours} Stunden Wartezeit; versuchen Sie es dann erneut.</translation>
    </message>
    <message>
        <source>The server asks to wait {minutes} minutes; try again then.</source>
        <translation>Der Server bittet um {minutes} min Wartezeit; versuchen Sie es dann erneut.</translation>
    </message>
    <message>
        <source>The server did not accept earlier reasoning, so the question was sent without it.</source>
        <translation>Der Server hat früheres Nachdenken nicht angenommen, daher wurde die Frage ohne es gestellt.</translation>
    </message>
    <message>
        <source>The server did not end its answer.</source>
        <translation>Der Server hat seine Antwort nicht beendet.</translation>
    </message>
    <message>
        <source>The server for signing in could not be reached ({why}).</source>
        <translation>Der Server zum Anmelden war nicht erreichbar ({why}).</translation>
    </message>
    <message>
        <source>The server gave no token ({why}).</source>
        <translation>Der Server gab kein Token ({why}).</translation>
    </message>
    <message>
        <source>The server gave no token.</source>
        <translation>Der Server gab kein Token.</translation>
    </message>
    <message>
        <source>The server has no name.</source>
        <translation>Der Server hat keinen Namen.</translation>
    </message>
    <message>
        <source>The server has no secret “{name}”.</source>
        <translation>Der Server hat kein Geheimnis „{name}“.</translation>
    </message>
    <message>
        <source>The server of “{model}” ended by itself.</source>
        <translation>Der Server von „{model}“ hat sich von selbst beendet.</translation>
    </message>
    <message>
        <source>The server of “{model}” ended while it answered.</source>
        <translation>Der Server von „{model}“ hat sich beendet, während er antwortete.</translation>
    </message>
    <message>
        <source>The server redirects to another one, “{host}”, which is not allowed.</source>
        <translation>Der Server leitet zu einem anderen weiter, „{host}“, was nicht erlaubt ist.</translation>
    </message>
    <message>
        <source>The server refused reasoning of earlier turns, so it was asked once more without that reasoning.</source>
        <translation>Der Server wies das Nachdenken früherer Runden zurück, daher wurde er ohne es noch einmal gefragt.</translation>
    </message>
    <message>
        <source>The server repeated parts of its answer. They are shown once.</source>
        <translation>Der Server hat Teile seiner Antwort immer wieder gesendet. Sie werden einmal gezeigt.</translation>
    </message>
    <message>
        <source>The server said that the model calls a tool, but no call came.</source>
        <translation>Der Server sagte, dass das Modell ein Werkzeug aufruft, aber es kam kein Aufruf.</translation>
    </message>
    <message>
        <source>The server sent something too large to be a token.</source>
        <translation>Der Server hat etwas gesendet, das zu groß für ein Token ist.</translation>
    </message>
    <message>
        <source>The server wants an API key: {message}</source>
        <translation>Der Server verlangt einen API-Schlüssel: {message}</translation>
    </message>
    <message>
        <source>The server “{server}” cannot be taken over: {why}.</source>
        <translation>Der Server „{server}“ lässt sich nicht übernehmen: {why}.</translation>
    </message>
    <message>
        <source>The server “{server}” could not be reached: {why}</source>
        <translation>Der Server „{server}“ war nicht erreichbar: {why}</translation>
    </message>
    <message>
        <source>The server “{server}” could not be started: {why}</source>
        <translation>Der Server „{server}“ konnte nicht gestartet werden: {why}</translation>
    </message>
    <message>
        <source>The server “{server}” describes its tools at such length that {n} of them are left out.</source>
        <translation>Der Server „{server}“ beschreibt seine Werkzeuge zu ausführlich, daher werden einige weggelassen: {n}.</translation>
    </message>
    <message>
        <source>The server “{server}” does not answer.</source>
        <translation>Der Server „{server}“ antwortet nicht.</translation>
    </message>
    <message>
        <source>The server “{server}” ended by itself; it is started again when it is needed.</source>
        <translation>Der Server „{server}“ hat sich von selbst beendet; er wird bei Bedarf wieder gestartet.</translation>
    </message>
    <message>
        <source>The server “{server}” ended while it was asked; what it was doing may have taken effect.</source>
        <translation>Der Server „{server}“ hat sich während der Anfrage beendet; was er gerade tat, hat vielleicht gewirkt.</translation>
    </message>
    <message>
        <source>The server “{server}” has two tools named “{tool}”.</source>
        <translation>Der Server „{server}“ hat zwei Werkzeuge namens „{tool}“.</translation>
    </message>
    <message>
        <source>The server “{server}” is not set up for signing in.</source>
        <translation>Der Server „{server}“ ist nicht zum Anmelden eingerichtet.</translation>
    </message>
    <message>
        <source>The server “{server}” is still starting; its tools come when it is there.</source>
        <translation>Der Server „{server}“ startet noch; seine Werkzeuge kommen, wenn er da ist.</translation>
    </message>
    <message>
        <source>The server “{server}” refused: {why}</source>
        <translation>Der Server „{server}“ lehnte ab: {why}</translation>
    </message>
    <message>
        <source>The server “{server}” wants to know who you are: turn on signing in, or correct its key.</source>
        <translation>Der Server „{server}“ will wissen, wer Sie sind: Schalten Sie das Anmelden ein, oder berichtigen Sie seinen Schlüssel.</translation>
    </message>
    <message>
        <source>The server “{server}” wants you to allow more than when you signed in.</source>
        <translation>Der Server „{server}“ möchte, dass Sie mehr erlauben als bei der Anmeldung.</translation>
    </message>
    <message>
        <source>The server “{server}” was removed meanwhile.</source>
        <translation>Der Server „{server}“ wurde inzwischen entfernt.</translation>
    </message>
    <message>
        <source>The server “{server}” was turned off, removed or changed before it answered.</source>
        <translation>Der Server „{server}“ wurde ausgeschaltet, entfernt oder geändert, bevor er geantwortet hat.</translation>
    </message>
    <message>
        <source>The server “{title}” is no longer set up.</source>
        <translation>Der Server „{title}“ ist nicht mehr eingerichtet.</translation>
    </message>
    <message>
        <source>The server&apos;s address is empty.</source>
        <translation>Die Adresse des Servers ist leer.</translation>
    </message>
    <message>
        <source>The server&apos;s final answer differs from what it sent before. The first version is shown.</source>
        <translation>Die endgültige Antwort des Servers weicht von dem ab, was er vorher gesendet hat. Gezeigt wird die erste Fassung.</translation>
    </message>
    <message>
        <source>The server&apos;s information about signing in is contradictory ({why}).</source>
        <translation>Die Angaben des Servers zum Anmelden sind widersprüchlich ({why}).</translation>
    </message>
    <message>
        <source>The setting “{title}” had a value that cannot be used; it has its default.</source>
        <translation>Die Einstellung „{title}“ hatte einen unbrauchbaren Wert; sie hat jetzt ihren Standardwert.</translation>
    </message>
    <message>
        <source>The settings are damaged, and the file cannot be set aside. All of them have their defaults.</source>
        <translation>Die Einstellungen sind beschädigt, und die Datei lässt sich nicht beiseitelegen. Alle haben ihre Standardwerte.</translation>
    </message>
    <message>
        <source>The settings of the server “{server}” were changed meanwhile.</source>
        <translation>Der Server „{server}“ wurde inzwischen anders eingerichtet.</translation>
    </message>
    <message>
        <source>The settings were damaged. The file was kept as “{name}”, and all settings have their defaults.</source>
        <translation>Die Einstellungen waren beschädigt. Die Datei wurde als „{name}“ aufbewahrt, und alle Einstellungen haben ihre Standardwerte.</translation>
    </message>
    <message>
        <source>The sign-in page has an address that is not allowed.</source>
        <translation>Die Anmeldeseite hat eine Adresse, die nicht erlaubt ist.</translation>
    </message>
    <message>
        <source>The sign-in server does not support protected sign-ins (PKCE, S256).</source>
        <translation>Der Anmeldeserver unterstützt keine geschützten Anmeldungen (PKCE, S256).</translation>
    </message>
    <message>
        <source>The sign-in to the server “{server}” is no longer valid.</source>
        <translation>Die Anmeldung am Server „{server}“ gilt nicht mehr.</translation>
    </message>
    <message>
        <source>The sign-in to “{host}” could not be renewed: its sign-in server cannot be reached.</source>
        <translation>Die Anmeldung an „{host}“ konnte nicht erneuert werden: Der Anmeldeserver ist nicht erreichbar.</translation>
    </message>
    <message>
        <source>The sign-in to “{host}” is being renewed by another window of the program, which does not finish.</source>
        <translation>Die Anmeldung an „{host}“ wird gerade von einem anderen Fenster des Programms erneuert, das damit nicht fertig wird.</translation>
    </message>
    <message>
        <source>The sign-in took too long.</source>
        <translation>Die Anmeldung dauerte zu lange.</translation>
    </message>
    <message>
        <source>The sign-in was refused ({word}).</source>
        <translation>Die Anmeldung wurde abgelehnt ({word}).</translation>
    </message>
    <message>
        <source>The specialist “{name}” did not finish.</source>
        <translation>Der Spezialist „{name}“ wurde nicht fertig.</translation>
    </message>
    <message>
        <source>The specialist “{name}” ended without saying anything.</source>
        <translation>Der Spezialist „{name}“ endete, ohne etwas zu sagen.</translation>
    </message>
    <message>
        <source>The specialist “{name}” failed: {why}</source>
        <translation>Der Spezialist „{name}“ ist gescheitert: {why}</translation>
    </message>
    <message>
        <source>The specialist “{name}” has no tools, but asked for one.</source>
        <translation>Der Spezialist „{name}“ hat keine Werkzeuge, bat aber um eines.</translation>
    </message>
    <message>
        <source>The specialist “{name}” stopped at a limit: {which}.</source>
        <translation>Der Spezialist „{name}“ hielt an einer Grenze an: {which}.</translation>
    </message>
    <message>
        <source>The specialist “{name}” was stopped by the person.</source>
        <translation>Der Spezialist „{name}“ wurde vom Benutzer angehalten.</translation>
    </message>
    <message>
        <source>The store is closed.</source>
        <translation>Der Speicher ist geschlossen.</translation>
    </message>
    <message>
        <source>The system does not permit access to “{path}”.</source>
        <translation>Das System erlaubt keinen Zugriff auf „{path}“.</translation>
    </message>
    <message>
        <source>The text of “{name}” is too long to be attached.</source>
        <translation>Der Text von „{name}“ ist zu lang, um angehängt zu werden.</translation>
    </message>
    <message>
        <source>The tool failed.</source>
        <translation>Das Werkzeug ist fehlgeschlagen.</translation>
    </message>
    <message>
        <source>The tool failed: {words}</source>
        <translation>Das Werkzeug ist fehlgeschlagen: {words}</translation>
    </message>
    <message>
        <source>The tool gave back something that cannot be written as JSON.</source>
        <translation>Das Werkzeug gab etwas zurück, das sich nicht als JSON schreiben lässt.</translation>
    </message>
    <message>
        <source>The tool gave back something that is nested too deep.</source>
        <translation>Das Werkzeug gab etwas zurück, das zu tief verschachtelt ist.</translation>
    </message>
    <message>
        <source>The tool itself must be corrected.</source>
        <translation>Das Werkzeug selbst muss in Ordnung gebracht werden.</translation>
    </message>
    <message>
        <source>The tool ran, but answered with something that cannot be written as JSON ({kind}).</source>
        <translation>Das Werkzeug lief, antwortete aber mit etwas, das sich nicht als JSON schreiben lässt ({kind}).</translation>
    </message>
    <message>
        <source>The tool “{name}” may not be used here.</source>
        <translation>Das Werkzeug „{name}“ darf hier nicht benutzt werden.</translation>
    </message>
    <message>
        <source>The tool “{tool}” of the server “{server}” cannot be used: {why}</source>
        <translation>Das Werkzeug „{tool}“ des Servers „{server}“ lässt sich nicht verwenden: {why}</translation>
    </message>
    <message>
        <source>The tool “{tool}” of the server “{server}” has a new description. The server says that the tool only reads, and you trust the server: turn that off in its settings if you do not expect this.</source>
        <translation>Das Werkzeug „{tool}“ des Servers „{server}“ hat eine neue Beschreibung. Der Server sagt, dass es nur liest, und Sie vertrauen ihm: Schalten Sie das in seinen Einstellungen ab, wenn Sie das nicht erwarten.</translation>
    </message>
    <message>
        <source>The tool “{tool}” of the server “{server}” has a new description: rules that allowed the tool no longer apply.</source>
        <translation>Das Werkzeug „{tool}“ des Servers „{server}“ hat eine neue Beschreibung: Regeln, die es erlaubten, gelten nicht mehr.</translation>
    </message>
    <message>
        <source>The tool “{tool}” takes the running call twice.</source>
        <translation>Das Werkzeug „{tool}“ nimmt den laufenden Aufruf zweimal entgegen.</translation>
    </message>
    <message>
        <source>The tool “{tool}” that could undo it is not there any more.</source>
        <translation>Das Werkzeug „{tool}“, das es rückgängig machen könnte, ist nicht mehr da.</translation>
    </message>
    <message>
        <source>The type hints of the tool “{tool}” cannot be read: {why}.</source>
        <translation>Die Typangaben des Werkzeugs „{tool}“ lassen sich nicht lesen: {why}.</translation>
    </message>
    <message>
        <source>The type of the argument “{name}” cannot be written as JSON.</source>
        <translation>Der Typ des Arguments „{name}“ lässt sich nicht als JSON schreiben.</translation>
    </message>
    <message>
        <source>The type of the argument “{name}” is “{word}”, which is not a type.</source>
        <translation>Der Typ des Arguments „{name}“ ist „{word}“, und das ist kein Typ.</translation>
    </message>
    <message>
        <source>The value of “{name}” is empty, or has more than one line.</source>
        <translation>Der Wert von „{name}“ ist leer oder hat mehr als eine Zeile.</translation>
    </message>
    <message>
        <source>The value of “{name}” is not in the keyring.</source>
        <translation>Der Wert von „{name}“ ist nicht im Schlüsselbund.</translation>
    </message>
    <message>
        <source>The workspace contains your home folder: the command can read all of that, except the usual places of keys, passwords, mail and browsers.</source>
        <translation>Der Arbeitsordner enthält Ihren persönlichen Ordner: Der Befehl kann ihn ganz lesen, außer den üblichen Orten von Schlüsseln, Passwörtern, E-Mail und Browsern.</translation>
    </message>
    <message>
        <source>The workspace folder itself cannot be deleted.</source>
        <translation>Der Arbeitsordner selbst kann nicht gelöscht werden.</translation>
    </message>
    <message>
        <source>The workspace folder “{path}” is not there any more.</source>
        <translation>Der Arbeitsordner „{path}“ ist nicht mehr da.</translation>
    </message>
    <message>
        <source>The workspace has too many files or repositories to find every Git repository. Commands may change the hooks and settings of some, and you are not told.</source>
        <translation>Der Arbeitsordner hat zu viele Dateien oder Repositorys, um jedes Git-Repository zu finden. Befehle können die Hooks und Einstellungen einiger ändern, ohne dass Sie es erfahren.</translation>
    </message>
    <message>
        <source>There are no readable conversations in “{folder}”.</source>
        <translation>In „{folder}“ gibt es keine lesbaren Unterhaltungen.</translation>
    </message>
    <message>
        <source>There are no saved conversations in “{folder}”.</source>
        <translation>In „{folder}“ gibt es keine gespeicherten Unterhaltungen.</translation>
    </message>
    <message>
        <source>There are no “mcpServers” in this JSON.</source>
        <translation>In diesem JSON gibt es keine „mcpServers“.</translation>
    </message>
    <message>
        <source>There are two tools named “{name}”.</source>
        <translation>Es gibt zwei Werkzeuge namens „{name}“.</translation>
    </message>
    <message>
        <source>There is a “{path}” already.</source>
        <translation>Ein „{path}“ gibt es schon.</translation>
    </message>
    <message>
        <source>There is no PowerShell on this system.</source>
        <translation>Auf diesem System gibt es keine PowerShell.</translation>
    </message>
    <message>
        <source>There is no answer to this yet.</source>
        <translation>Darauf gibt es noch keine Antwort.</translation>
    </message>
    <message>
        <source>There is no conversation “{id}”.</source>
        <translation>Es gibt keine Unterhaltung „{id}“.</translation>
    </message>
    <message>
        <source>There is no folder “{path}” to run a program in.</source>
        <translation>Es gibt keinen Ordner „{path}“, in dem ein Programm laufen könnte.</translation>
    </message>
    <message>
        <source>There is no folder “{path}” to work in.</source>
        <translation>Es gibt keinen Ordner „{path}“, in dem gearbeitet werden könnte.</translation>
    </message>
    <message>
        <source>There is no folder “{path}”.</source>
        <translation>Es gibt keinen Ordner „{path}“.</translation>
    </message>
    <message>
        <source>There is no guard “{name}”.</source>
        <translation>Es gibt keinen Wächter „{name}“.</translation>
    </message>
    <message>
        <source>There is no home folder for “{path}”.</source>
        <translation>Zu „{path}“ gibt es keinen persönlichen Ordner.</translation>
    </message>
    <message>
        <source>There is no llama.cpp server on this computer.</source>
        <translation>Auf diesem Computer gibt es keinen llama.cpp-Server.</translation>
    </message>
    <message>
        <source>There is no message “{id}” in this conversation.</source>
        <translation>Es gibt keine Nachricht „{id}“ in dieser Unterhaltung.</translation>
    </message>
    <message>
        <source>There is no mode “{name}” any more, so “{title}” holds. Choose another mode.</source>
        <translation>Es gibt keinen Modus „{name}“ mehr, daher gilt „{title}“. Wählen Sie einen anderen Modus.</translation>
    </message>
    <message>
        <source>There is no mode “{name}”.</source>
        <translation>Es gibt keinen Modus „{name}“.</translation>
    </message>
    <message>
        <source>There is no program “{name}”.</source>
        <translation>Es gibt kein Programm „{name}“.</translation>
    </message>
    <message>
        <source>There is no room left on the disk of “{path}”.</source>
        <translation>Auf dem Datenträger von „{path}“ ist kein Platz mehr.</translation>
    </message>
    <message>
        <source>There is no sandbox on Windows.</source>
        <translation>Unter Windows gibt es keine Sandbox.</translation>
    </message>
    <message>
        <source>There is no server “{server}” that is on.</source>
        <translation>Es gibt keinen eingeschalteten Server „{server}“.</translation>
    </message>
    <message>
        <source>There is no such checkpoint in this conversation.</source>
        <translation>Diesen Sicherungspunkt gibt es in dieser Unterhaltung nicht.</translation>
    </message>
    <message>
        <source>There is no such folder any more.</source>
        <translation>Diesen Ordner gibt es nicht mehr.</translation>
    </message>
    <message>
        <source>There is no such message in this conversation.</source>
        <translation>Diese Nachricht gibt es in dieser Unterhaltung nicht.</translation>
    </message>
    <message>
        <source>There is no tool named “{name}”.</source>
        <translation>Es gibt kein Werkzeug namens „{name}“.</translation>
    </message>
    <message>
        <source>There is no tool “{name}”. The tools are: {names}.</source>
        <translation>Es gibt kein Werkzeug „{name}“. Die Werkzeuge sind: {names}.</translation>
    </message>
    <message>
        <source>There is no tool “{name}”; this conversation has no tools.</source>
        <translation>Es gibt kein Werkzeug „{name}“; diese Unterhaltung hat keine Werkzeuge.</translation>
    </message>
    <message>
        <source>There is no workspace for this rule to hold in.</source>
        <translation>Es gibt keinen Arbeitsordner, in dem diese Regel gelten könnte.</translation>
    </message>
    <message>
        <source>There is no “{path}” in the workspace.</source>
        <translation>Im Arbeitsordner gibt es kein „{path}“.</translation>
    </message>
    <message>
        <source>There is nothing to answer: the conversation has no words yet.</source>
        <translation>Es gibt nichts zu beantworten: Die Unterhaltung hat noch keine Worte.</translation>
    </message>
    <message>
        <source>There is nothing to export.</source>
        <translation>Es gibt nichts zu exportieren.</translation>
    </message>
    <message>
        <source>There is nothing to look for.</source>
        <translation>Es gibt nichts zu suchen.</translation>
    </message>
    <message>
        <source>There is nothing to merge.</source>
        <translation>Es gibt nichts zusammenzuführen.</translation>
    </message>
    <message>
        <source>There is nothing to summarise yet.</source>
        <translation>Es gibt noch nichts zusammenzufassen.</translation>
    </message>
    <message>
        <source>There is nothing to try again.</source>
        <translation>Es gibt nichts erneut zu versuchen.</translation>
    </message>
    <message>
        <source>These are too many servers at once.</source>
        <translation>Das sind zu viele Server auf einmal.</translation>
    </message>
    <message>
        <source>These files could not be put back: {paths}</source>
        <translation>Diese Dateien konnten nicht zurückgesetzt werden: {paths}</translation>
    </message>
    <message>
        <source>These files were not put back, and are as they were left or changed since:</source>
        <translation>Diese Dateien wurden nicht zurückgesetzt und sind so, wie sie hinterlassen oder seitdem geändert wurden:</translation>
    </message>
    <message>
        <source>These files were put back:</source>
        <translation>Diese Dateien wurden zurückgesetzt:</translation>
    </message>
    <message>
        <source>They are not a JSON object.</source>
        <translation>Sie sind kein JSON-Objekt.</translation>
    </message>
    <message>
        <source>They cannot be used ({kind}).</source>
        <translation>Sie sind nicht verwendbar ({kind}).</translation>
    </message>
    <message>
        <source>This API has no stop sequences, so they were left out.</source>
        <translation>Diese Schnittstelle hat keine Stoppfolgen, daher wurden sie weggelassen.</translation>
    </message>
    <message>
        <source>This API has no top_k, so it was left out.</source>
        <translation>Diese Schnittstelle hat kein top_k, daher wurde es weggelassen.</translation>
    </message>
    <message>
        <source>This answer was interrupted.</source>
        <translation>Diese Antwort wurde unterbrochen.</translation>
    </message>
    <message>
        <source>This approval was opened before.</source>
        <translation>Diese Freigabe wurde schon geöffnet.</translation>
    </message>
    <message>
        <source>This archive claims to contain more than any export does.</source>
        <translation>Dieses Archiv gibt an, mehr zu enthalten als irgendein Export.</translation>
    </message>
    <message>
        <source>This belongs to another event loop.</source>
        <translation>Das gehört zu einer anderen Ereignisschleife.</translation>
    </message>
    <message>
        <source>This build has an unusable address for new versions.</source>
        <translation>Die Adresse für neue Versionen in diesem Programm ist unbrauchbar.</translation>
    </message>
    <message>
        <source>This checkpoint belongs to another folder.</source>
        <translation>Dieser Sicherungspunkt gehört zu einem anderen Ordner.</translation>
    </message>
    <message>
        <source>This command may not reach {host}. It may reach {hosts}.</source>
        <translation>Dieser Befehl darf {host} nicht erreichen. Erreichen darf er {hosts}.</translation>
    </message>
    <message>
        <source>This computer offers no safe keyring for API keys.</source>
        <translation>Dieser Computer bietet keinen sicheren Schlüsselbund für API-Schlüssel.</translation>
    </message>
    <message>
        <source>This conversation is being stored just now.</source>
        <translation>Diese Unterhaltung wird gerade gespeichert.</translation>
    </message>
    <message>
        <source>This conversation is being worked on by another process.</source>
        <translation>An dieser Unterhaltung arbeitet ein anderer Prozess.</translation>
    </message>
    <message>
        <source>This conversation is being worked on by {who} since {since}.</source>
        <translation>An dieser Unterhaltung arbeitet {who} seit {since}.</translation>
    </message>
    <message>
        <source>This conversation is closed.</source>
        <translation>Diese Unterhaltung ist geschlossen.</translation>
    </message>
    <message>
        <source>This conversation is in the trash.</source>
        <translation>Diese Unterhaltung ist im Papierkorb.</translation>
    </message>
    <message>
        <source>This conversation is not in the trash.</source>
        <translation>Diese Unterhaltung ist nicht im Papierkorb.</translation>
    </message>
    <message>
        <source>This conversation is only read here.</source>
        <translation>Diese Unterhaltung wird hier nur gelesen.</translation>
    </message>
    <message>
        <source>This conversation of {program} cannot be read: {reason}.</source>
        <translation>Diese Unterhaltung von {program} lässt sich nicht lesen: {reason}.</translation>
    </message>
    <message>
        <source>This cron line never matches a time.</source>
        <translation>Diese Cron-Zeile trifft nie auf einen Zeitpunkt zu.</translation>
    </message>
    <message>
        <source>This folder has too many files.</source>
        <translation>Dieser Ordner hat zu viele Dateien.</translation>
    </message>
    <message>
        <source>This is a proxy: it takes CONNECT, and requests with a whole http address.</source>
        <translation>Das ist ein Proxy: Er nimmt CONNECT und Anfragen mit einer ganzen http-Adresse an.</translation>
    </message>
    <message>
        <source>This is closed.</source>
        <translation>Das ist geschlossen.</translation>
    </message>
    <message>
        <source>This is never run: {reason} Find another way.</source>
        <translation>Das wird nie ausgeführt: {reason} Finden Sie einen anderen Weg.</translation>
    </message>
    <message>
        <source>This is not a decision.</source>
        <translation>Das ist keine Entscheidung.</translation>
    </message>
    <message>
        <source>This is not a message.</source>
        <translation>Das ist keine Nachricht.</translation>
    </message>
    <message>
        <source>This is not an answer.</source>
        <translation>Das ist keine Antwort.</translation>
    </message>
    <message>
        <source>This is not valid JSON: line {line} cannot be read.</source>
        <translation>Das ist kein gültiges JSON: Zeile {line} lässt sich nicht lesen.</translation>
    </message>
    <message>
        <source>This is too long to be a list of servers.</source>
        <translation>Das ist zu lang für eine Liste von Servern.</translation>
    </message>
    <message>
        <source>This message does not wait any more.</source>
        <translation>Diese Nachricht wartet nicht mehr.</translation>
    </message>
    <message>
        <source>This message waits already.</source>
        <translation>Diese Nachricht wartet schon.</translation>
    </message>
    <message>
        <source>This message was sent already.</source>
        <translation>Diese Nachricht wurde schon gesendet.</translation>
    </message>
    <message>
        <source>This model always reasons; it was asked to reason as little as it can.</source>
        <translation>Dieses Modell denkt immer nach; es wurde gebeten, es so wenig wie möglich zu tun.</translation>
    </message>
    <message>
        <source>This model cannot be made to call a tool; it was left free to choose.</source>
        <translation>Dieses Modell lässt sich nicht zu einem Werkzeugaufruf bringen; die Wahl blieb ihm überlassen.</translation>
    </message>
    <message>
        <source>This model decides by itself how much to reason.</source>
        <translation>Dieses Modell entscheidet selbst, wie viel es nachdenkt.</translation>
    </message>
    <message>
        <source>This model does not go on from an answer of its own; it was asked in words to continue.</source>
        <translation>Dieses Modell setzt eine eigene Antwort nicht fort; es wurde mit Worten gebeten, weiterzumachen.</translation>
    </message>
    <message>
        <source>This model does not read pictures.</source>
        <translation>Dieses Modell liest keine Bilder.</translation>
    </message>
    <message>
        <source>This model does not reason, so no reasoning was asked for.</source>
        <translation>Dieses Modell denkt nicht nach, daher wurde nicht darum gebeten.</translation>
    </message>
    <message>
        <source>This model takes a budget for reasoning instead of a level.</source>
        <translation>Dieses Modell erwartet ein Budget zum Nachdenken statt einer Stufe.</translation>
    </message>
    <message>
        <source>This model&apos;s reasoning cannot be switched off altogether; it may comment between tool calls.</source>
        <translation>Das Nachdenken dieses Modells lässt sich nicht ganz abschalten; es äußert sich vielleicht zwischen Werkzeugaufrufen.</translation>
    </message>
    <message>
        <source>This provider sets its own sampling: {name} was not sent.</source>
        <translation>Dieser Anbieter bestimmt das Sampling selbst: {name} wurde nicht gesendet.</translation>
    </message>
    <message>
        <source>This provider takes JSON by a schema only; JSON was asked for in words.</source>
        <translation>Dieser Anbieter nimmt JSON nur mit Schema an; um JSON wurde mit Worten gebeten.</translation>
    </message>
    <message>
        <source>This question takes one answer.</source>
        <translation>Auf diese Frage gibt es nur eine Antwort.</translation>
    </message>
    <message>
        <source>This rule was not proposed for this call.</source>
        <translation>Diese Regel wurde für diesen Aufruf nicht vorgeschlagen.</translation>
    </message>
    <message>
        <source>This server caches prompts by itself; this cannot be changed.</source>
        <translation>Dieser Server behält Prompts von sich aus im Cache; das lässt sich nicht ändern.</translation>
    </message>
    <message>
        <source>This server does not accept {names}, so the question was sent without.</source>
        <translation>Dieser Server nimmt {names} nicht an, daher wurde die Frage ohne gestellt.</translation>
    </message>
    <message>
        <source>This server does not cache prompts on request.</source>
        <translation>Dieser Server behält Prompts nicht auf Wunsch im Cache.</translation>
    </message>
    <message>
        <source>This server does not fetch pictures from the web.</source>
        <translation>Dieser Server holt keine Bilder aus dem Web.</translation>
    </message>
    <message>
        <source>This server does not read GIF pictures.</source>
        <translation>Dieser Server liest keine GIF-Bilder.</translation>
    </message>
    <message>
        <source>This server may store the conversation: it does not accept the request not to.</source>
        <translation>Dieser Server speichert die Unterhaltung vielleicht: Er nimmt die Bitte nicht an, es nicht zu tun.</translation>
    </message>
    <message>
        <source>This server takes four stop sequences, so the others were left out.</source>
        <translation>Dieser Server nimmt vier Stoppfolgen an, daher wurden die anderen weggelassen.</translation>
    </message>
    <message>
        <source>This system does not let bubblewrap work, and has no Landlock of version 4 or later.</source>
        <translation>Dieses System lässt bubblewrap nicht arbeiten und hat kein Landlock ab Version 4.</translation>
    </message>
    <message>
        <source>This system has no sandbox that can confine commands.</source>
        <translation>Dieses System hat keine Sandbox, die Befehle abschotten kann.</translation>
    </message>
    <message>
        <source>This version understands an entry of the setting “{title}” only in part. That part applies.</source>
        <translation>Diese Version versteht einen Eintrag der Einstellung „{title}“ nur zum Teil. Dieser Teil gilt.</translation>
    </message>
    <message>
        <source>This was closed before the server answered.</source>
        <translation>Dies wurde geschlossen, bevor der Server geantwortet hat.</translation>
    </message>
    <message>
        <source>Timed out</source>
        <translation>Zeit abgelaufen</translation>
    </message>
    <message>
        <source>Too much of it is damaged: the rest was not read.</source>
        <translation>Zu viel davon ist beschädigt: Der Rest wurde nicht gelesen.</translation>
    </message>
    <message>
        <source>Try again later.</source>
        <translation>Versuchen Sie es später erneut.</translation>
    </message>
    <message>
        <source>Try again later; you stay signed in until then.</source>
        <translation>Versuchen Sie es später erneut; bis dahin bleiben Sie angemeldet.</translation>
    </message>
    <message>
        <source>Try again, or open the address in a browser.</source>
        <translation>Versuchen Sie es erneut, oder öffnen Sie die Adresse in einem Browser.</translation>
    </message>
    <message>
        <source>Try again, or raise the time limit if this model is slow to start.</source>
        <translation>Versuchen Sie es erneut, oder erhöhen Sie das Zeitlimit, falls dieses Modell langsam anläuft.</translation>
    </message>
    <message>
        <source>Try again.</source>
        <translation>Versuchen Sie es erneut.</translation>
    </message>
    <message>
        <source>Try again: it starts as it is set up now.</source>
        <translation>Versuchen Sie es erneut: Er startet so, wie er jetzt eingerichtet ist.</translation>
    </message>
    <message>
        <source>Try again; if it fails again, the conversations themselves may be damaged.</source>
        <translation>Versuchen Sie es erneut; schlägt es wieder fehl, sind vielleicht die Unterhaltungen selbst beschädigt.</translation>
    </message>
    <message>
        <source>Try again; if it happens again, look at the server&apos;s own log or status page.</source>
        <translation>Versuchen Sie es erneut; geschieht es wieder, sehen Sie im Protokoll oder auf der Statusseite des Servers nach.</translation>
    </message>
    <message>
        <source>Try again; models often get the call right the second time.</source>
        <translation>Versuchen Sie es erneut; beim zweiten Mal gelingt der Aufruf den Modellen oft.</translation>
    </message>
    <message>
        <source>Try it again, or look in fewer files.</source>
        <translation>Versuchen Sie es noch einmal, oder suchen Sie in weniger Dateien.</translation>
    </message>
    <message>
        <source>Trying again in {seconds} s.</source>
        <translation>Neuer Versuch in {seconds} s.</translation>
    </message>
    <message>
        <source>Trying again.</source>
        <translation>Neuer Versuch.</translation>
    </message>
    <message>
        <source>Turn it on in the settings.</source>
        <translation>Schalten Sie es in den Einstellungen ein.</translation>
    </message>
    <message>
        <source>Turn it on, then sign in.</source>
        <translation>Schalten Sie ihn ein, und melden Sie sich dann an.</translation>
    </message>
    <message>
        <source>Turn on signing in, in the settings of the server.</source>
        <translation>Schalten Sie in den Einstellungen des Servers das Anmelden ein.</translation>
    </message>
    <message>
        <source>Turn prompt caching off for this provider.</source>
        <translation>Schalten Sie Prompt-Caching für diesen Anbieter ab.</translation>
    </message>
    <message>
        <source>Turned upright, as the camera noted.</source>
        <translation>Aufrecht gedreht, wie die Kamera es vermerkt hat.</translation>
    </message>
    <message>
        <source>Two modes have the same name.</source>
        <translation>Zwei Modi haben denselben Namen.</translation>
    </message>
    <message>
        <source>Two types of the arguments are both named “{name}”.</source>
        <translation>Zwei Typen der Argumente heißen beide „{name}“.</translation>
    </message>
    <message>
        <source>Type one.</source>
        <translation>Schreiben Sie einen.</translation>
    </message>
    <message>
        <source>Undone by tools:</source>
        <translation>Von Werkzeugen rückgängig gemacht:</translation>
    </message>
    <message>
        <source>Unknown</source>
        <translation>Unbekannt</translation>
    </message>
    <message>
        <source>Unlock the keyring and try again, or keep the key in memory until the program is closed.</source>
        <translation>Entsperren Sie den Schlüsselbund, und versuchen Sie es erneut, oder lassen Sie den Schlüssel bis zum Ende des Programms im Arbeitsspeicher.</translation>
    </message>
    <message>
        <source>Unlock the keyring and try again, or name the server with --dialect or --base-url and give its key in {variable}.</source>
        <translation>Entsperren Sie den Schlüsselbund, und versuchen Sie es erneut, oder nennen Sie den Server mit --dialect oder --base-url und geben Sie seinen Schlüssel in {variable} an.</translation>
    </message>
    <message>
        <source>Unpack it with its password, and import the file with the conversations.</source>
        <translation>Entpacken Sie es mit seinem Passwort, und importieren Sie die Datei mit den Unterhaltungen.</translation>
    </message>
    <message>
        <source>Unpack it, and import the file with the conversations.</source>
        <translation>Entpacken Sie es, und importieren Sie die Datei mit den Unterhaltungen.</translation>
    </message>
    <message>
        <source>Update the to-do list</source>
        <translation>Aufgabenliste aktualisieren</translation>
    </message>
    <message>
        <source>Use 1 to 64 letters, digits, _ and -.</source>
        <translation>Verwenden Sie 1 bis 64 Buchstaben, Ziffern, _ und -.</translation>
    </message>
    <message>
        <source>Use `async with Client(…)` and await complete().</source>
        <translation>Verwenden Sie `async with Client(…)` und await complete().</translation>
    </message>
    <message>
        <source>Use a PNG, JPEG, GIF or WebP picture.</source>
        <translation>Verwenden Sie ein PNG-, JPEG-, GIF- oder WebP-Bild.</translation>
    </message>
    <message>
        <source>Use a path inside the workspace folder.</source>
        <translation>Verwenden Sie einen Pfad innerhalb des Arbeitsordners.</translation>
    </message>
    <message>
        <source>Use an http or https address of a public server, such as https://example.org/page.</source>
        <translation>Verwenden Sie eine http- oder https-Adresse eines öffentlichen Servers, etwa https://example.org/page.</translation>
    </message>
    <message>
        <source>Use an http or https address, or attach the file itself.</source>
        <translation>Verwenden Sie eine http- oder https-Adresse, oder hängen Sie die Datei selbst an.</translation>
    </message>
    <message>
        <source>Use functions, and types that are defined where the function&apos;s module can see them.</source>
        <translation>Verwenden Sie Funktionen und Typen, die dort definiert sind, wo das Modul der Funktion sie sehen kann.</translation>
    </message>
    <message>
        <source>Use letters and digits.</source>
        <translation>Verwenden Sie Buchstaben und Ziffern.</translation>
    </message>
    <message>
        <source>Use one of these: {words}.</source>
        <translation>Verwenden Sie eines davon: {words}.</translation>
    </message>
    <message>
        <source>Wait a moment and try again.</source>
        <translation>Warten Sie einen Moment, und versuchen Sie es erneut.</translation>
    </message>
    <message>
        <source>Wait a moment, then do it again.</source>
        <translation>Warten Sie einen Moment, und tun Sie es dann noch einmal.</translation>
    </message>
    <message>
        <source>Wait a moment, until it is read again.</source>
        <translation>Warten Sie einen Moment, bis es wieder gelesen ist.</translation>
    </message>
    <message>
        <source>Wait a moment.</source>
        <translation>Warten Sie einen Moment.</translation>
    </message>
    <message>
        <source>Wait for its answer or stop it, then try again.</source>
        <translation>Warten Sie seine Antwort ab, oder halten Sie sie an, und versuchen Sie es dann erneut.</translation>
    </message>
    <message>
        <source>Wait until it has ended, then try again.</source>
        <translation>Warten Sie, bis es beendet ist, und versuchen Sie es dann erneut.</translation>
    </message>
    <message>
        <source>Wait until that program is done.</source>
        <translation>Warten Sie, bis das andere Programm fertig ist.</translation>
    </message>
    <message>
        <source>Wait, or open its conversation and stop it.</source>
        <translation>Warten Sie, oder öffnen Sie die Unterhaltung, und halten Sie den Lauf an.</translation>
    </message>
    <message>
        <source>Wait, or press Stop first.</source>
        <translation>Warten Sie, oder drücken Sie erst „Anhalten“.</translation>
    </message>
    <message>
        <source>Waits for results</source>
        <translation>Wartet auf Ergebnisse</translation>
    </message>
    <message>
        <source>What was sent to {host} is neither TLS nor a request of HTTP as it has to be written, so it was not passed on. Other protocols, ssh among them, do not go through the proxy of this command.</source>
        <translation>Was an {host} gesendet wurde, ist weder TLS noch eine HTTP-Anfrage, wie sie geschrieben sein muss, daher wurde es nicht weitergegeben. Andere Protokolle, auch ssh, gehen nicht durch den Proxy dieses Befehls.</translation>
    </message>
    <message>
        <source>What “{host}” has there is not text: its type is {what}, its size {size} bytes.</source>
        <translation>Was „{host}“ dort hat, ist kein Text: Sein Typ ist {what}, seine Größe {size} Byte.</translation>
    </message>
    <message>
        <source>What “{tool}” undid is not redone; only files are restored.</source>
        <translation>Was „{tool}“ rückgängig gemacht hat, wird nicht wiederhergestellt; das gelingt nur mit Dateien.</translation>
    </message>
    <message>
        <source>Workspace folders: the conversations start without one here. Choose it again.</source>
        <translation>Arbeitsordner: Die Unterhaltungen beginnen hier ohne. Wählen Sie ihn neu.</translation>
    </message>
    <message>
        <source>Write ** for powers; ^ means something else.</source>
        <translation>Schreiben Sie ** für Potenzen; ^ bedeutet etwas anderes.</translation>
    </message>
    <message>
        <source>Write a file</source>
        <translation>Datei schreiben</translation>
    </message>
    <message>
        <source>Write a message first.</source>
        <translation>Schreiben Sie erst eine Nachricht.</translation>
    </message>
    <message>
        <source>Write all five.</source>
        <translation>Geben Sie alle fünf ein.</translation>
    </message>
    <message>
        <source>Write it as {“mcpServers”: {“name”: …}}.</source>
        <translation>Schreiben Sie es als {“mcpServers”: {“name”: …}}.</translation>
    </message>
    <message>
        <source>Write it shorter, and without look-around and back references.</source>
        <translation>Schreiben Sie ihn kürzer und ohne Lookarounds und Rückverweise.</translation>
    </message>
    <message>
        <source>Write it to a file, and run that.</source>
        <translation>Schreiben Sie ihn in eine Datei, und führen Sie diese aus.</translation>
    </message>
    <message>
        <source>Write it with a name and a type.</source>
        <translation>Schreiben Sie es mit einem Namen und einem Typ.</translation>
    </message>
    <message>
        <source>Write its name, and before it those of the folders that it is in, with a slash between them.</source>
        <translation>Schreiben Sie seinen Namen und davor die der Ordner, in denen er liegt, mit einem Schrägstrich dazwischen.</translation>
    </message>
    <message>
        <source>Write one expression, without assignments.</source>
        <translation>Schreiben Sie einen Ausdruck, ohne Zuweisungen.</translation>
    </message>
    <message>
        <source>Write something, or delete it.</source>
        <translation>Schreiben Sie etwas, oder löschen Sie es.</translation>
    </message>
    <message>
        <source>Write something.</source>
        <translation>Schreiben Sie etwas.</translation>
    </message>
    <message>
        <source>Write the path from the root on.</source>
        <translation>Schreiben Sie den Pfad von der Wurzel an.</translation>
    </message>
    <message>
        <source>Write the program alone as the command, and all that follows as its arguments.</source>
        <translation>Schreiben Sie nur das Programm als Befehl, und alles danach als seine Argumente.</translation>
    </message>
    <message>
        <source>Write what you want next.</source>
        <translation>Schreiben Sie, was Sie als Nächstes möchten.</translation>
    </message>
    <message>
        <source>You answered: {answer}</source>
        <translation>Ihre Antwort: {answer}</translation>
    </message>
    <message>
        <source>You are asked about every call of this tool.</source>
        <translation>Bei jedem Aufruf dieses Werkzeugs werden Sie gefragt.</translation>
    </message>
    <message>
        <source>Your file “{name}” cannot be used: {why}.</source>
        <translation>Ihre Datei „{name}“ lässt sich nicht verwenden: {why}.</translation>
    </message>
    <message>
        <source>Your file “{name}” is not text in UTF-8.</source>
        <translation>Ihre Datei „{name}“ ist kein Text in UTF-8.</translation>
    </message>
    <message>
        <source>Your file “{name}” is written in a way that cannot be changed from here.</source>
        <translation>Ihre Datei „{name}“ ist so geschrieben, dass sie sich von hier aus nicht ändern lässt.</translation>
    </message>
    <message>
        <source>a command that may reach {hosts}</source>
        <translation>einem Befehl mit Zugriff auf {hosts}</translation>
    </message>
    <message>
        <source>a hook refused it.</source>
        <translation>ein Hook hat sie abgelehnt.</translation>
    </message>
    <message>
        <source>a mode</source>
        <translation>einem Modus</translation>
    </message>
    <message>
        <source>a name in its header is too long</source>
        <translation>ein Name im Dateikopf ist zu lang</translation>
    </message>
    <message>
        <source>a number is too long, or it is nested too deeply</source>
        <translation>eine Zahl ist zu lang, oder sie ist zu tief verschachtelt</translation>
    </message>
    <message>
        <source>an imported conversation</source>
        <translation>einer importierten Unterhaltung</translation>
    </message>
    <message>
        <source>another format</source>
        <translation>einem anderen Format</translation>
    </message>
    <message>
        <source>another program</source>
        <translation>ein anderes Programm</translation>
    </message>
    <message>
        <source>another program (process {pid})</source>
        <translation>ein anderes Programm (Prozess {pid})</translation>
    </message>
    <message>
        <source>as it was before</source>
        <translation>wie sie vorher war</translation>
    </message>
    <message>
        <source>as it was before it was undone</source>
        <translation>wie sie vor dem Rückgängigmachen war</translation>
    </message>
    <message>
        <source>calls of one answer</source>
        <translation>Aufrufe einer Antwort</translation>
    </message>
    <message>
        <source>commands that begin with “{command}”</source>
        <translation>Befehle, die mit „{command}“ beginnen</translation>
    </message>
    <message>
        <source>cost</source>
        <translation>Kosten</translation>
    </message>
    <message>
        <source>exactly the command “{command}”</source>
        <translation>genau der Befehl „{command}“</translation>
    </message>
    <message>
        <source>git, only looking</source>
        <translation>git, nur lesend</translation>
    </message>
    <message>
        <source>git, recording (a commit starts the hooks of the repository)</source>
        <translation>git, schreibend (ein Commit startet die Hooks des Repositorys)</translation>
    </message>
    <message>
        <source>it asked for a tool of the server in a way that cannot be read.</source>
        <translation>es verlangte ein Werkzeug des Servers auf eine Weise, die nicht lesbar ist.</translation>
    </message>
    <message>
        <source>it cannot be opened</source>
        <translation>sie lässt sich nicht öffnen</translation>
    </message>
    <message>
        <source>it did not answer in HTTP</source>
        <translation>sie antwortete nicht in HTTP</translation>
    </message>
    <message>
        <source>it did not answer within {n} seconds</source>
        <translation>er antwortete nicht innerhalb von {n} Sekunden</translation>
    </message>
    <message>
        <source>it did not answer within {n} seconds, and wrote “{words}” where only messages of the protocol belong</source>
        <translation>er antwortete nicht innerhalb von {n} Sekunden und schrieb „{words}“, wo nur Nachrichten des Protokolls hingehören</translation>
    </message>
    <message>
        <source>it does not answer</source>
        <translation>er antwortet nicht</translation>
    </message>
    <message>
        <source>it does not begin like one</source>
        <translation>die Datei beginnt nicht wie eines</translation>
    </message>
    <message>
        <source>it ended again</source>
        <translation>er hat sich wieder beendet</translation>
    </message>
    <message>
        <source>it ended with the exit code {code}, and said nothing</source>
        <translation>er hat sich mit dem Exit-Code {code} beendet und nichts gemeldet</translation>
    </message>
    <message>
        <source>it ended with the exit code {code}: {words}</source>
        <translation>er hat sich mit dem Exit-Code {code} beendet: {words}</translation>
    </message>
    <message>
        <source>it ends in its header</source>
        <translation>die Datei endet im Dateikopf</translation>
    </message>
    <message>
        <source>it has both a command and an address</source>
        <translation>er hat sowohl einen Befehl als auch eine Adresse</translation>
    </message>
    <message>
        <source>it has neither a command nor an address</source>
        <translation>er hat weder einen Befehl noch eine Adresse</translation>
    </message>
    <message>
        <source>it has no name.</source>
        <translation>es hat keinen Namen.</translation>
    </message>
    <message>
        <source>it holds no JSON, or is nested too deep</source>
        <translation>sie enthält kein JSON oder ist zu tief verschachtelt</translation>
    </message>
    <message>
        <source>it is a link</source>
        <translation>das ist eine Verknüpfung</translation>
    </message>
    <message>
        <source>it is not a SQLite database</source>
        <translation>das ist keine SQLite-Datenbank</translation>
    </message>
    <message>
        <source>it is not a description of a tool.</source>
        <translation>das ist keine Beschreibung eines Werkzeugs.</translation>
    </message>
    <message>
        <source>it is not an object with “command” or “url”</source>
        <translation>er ist kein Objekt mit „command“ oder „url“</translation>
    </message>
    <message>
        <source>it is not an ordinary file</source>
        <translation>das ist keine gewöhnliche Datei</translation>
    </message>
    <message>
        <source>it is not in the newest backup</source>
        <translation>sie ist nicht in der neuesten Sicherung</translation>
    </message>
    <message>
        <source>it is not there any more</source>
        <translation>sie ist nicht mehr da</translation>
    </message>
    <message>
        <source>it is said to be split into too many files</source>
        <translation>es soll auf zu viele Dateien verteilt sein</translation>
    </message>
    <message>
        <source>it is too large</source>
        <translation>sie ist zu groß</translation>
    </message>
    <message>
        <source>it points to another address</source>
        <translation>sie verweist auf eine andere Adresse</translation>
    </message>
    <message>
        <source>it points to another address, at {host}</source>
        <translation>sie verweist auf eine andere Adresse, bei {host}</translation>
    </message>
    <message>
        <source>it sent a web page</source>
        <translation>sie schickte eine Webseite</translation>
    </message>
    <message>
        <source>it sent text that no model server sends</source>
        <translation>sie schickte Text, den kein Modellserver schickt</translation>
    </message>
    <message>
        <source>it was empty</source>
        <translation>sie war leer</translation>
    </message>
    <message>
        <source>it was ended by the signal {code}</source>
        <translation>er wurde durch das Signal {code} beendet</translation>
    </message>
    <message>
        <source>its address holds a name or a password</source>
        <translation>seine Adresse enthält einen Namen oder ein Passwort</translation>
    </message>
    <message>
        <source>its argument “{argument}” holds a secret</source>
        <translation>sein Argument „{argument}“ enthält ein Geheimnis</translation>
    </message>
    <message>
        <source>its arguments cannot be passed on</source>
        <translation>seine Argumente lassen sich nicht übergeben</translation>
    </message>
    <message>
        <source>its body is compressed in a way that was not asked for ({encoding})</source>
        <translation>ihr Inhalt ist auf eine Weise komprimiert, die nicht verlangt war ({encoding})</translation>
    </message>
    <message>
        <source>its compressed body is damaged</source>
        <translation>ihr komprimierter Inhalt ist beschädigt</translation>
    </message>
    <message>
        <source>its database is damaged ({words})</source>
        <translation>die Datenbank ist beschädigt ({words})</translation>
    </message>
    <message>
        <source>its header has a value of an unknown type</source>
        <translation>der Dateikopf hat einen Wert unbekannter Art</translation>
    </message>
    <message>
        <source>its header has too many entries</source>
        <translation>der Dateikopf hat zu viele Einträge</translation>
    </message>
    <message>
        <source>its header is too large</source>
        <translation>der Dateikopf ist zu groß</translation>
    </message>
    <message>
        <source>its headers are too long</source>
        <translation>ihre Kopfzeilen sind zu lang</translation>
    </message>
    <message>
        <source>its id is not the name of a file</source>
        <translation>ihre ID ist kein Dateiname</translation>
    </message>
    <message>
        <source>its name cannot be used</source>
        <translation>sein Name lässt sich nicht verwenden</translation>
    </message>
    <message>
        <source>its name holds a secret that was given to the server.</source>
        <translation>sein Name enthält ein Geheimnis, das dem Server gegeben wurde.</translation>
    </message>
    <message>
        <source>its name is too long.</source>
        <translation>sein Name ist zu lang.</translation>
    </message>
    <message>
        <source>its program is running, and its database is too large to be copied</source>
        <translation>das Programm läuft, und seine Datenbank ist zu groß, um kopiert zu werden</translation>
    </message>
    <message>
        <source>its program is writing to it</source>
        <translation>das Programm schreibt gerade hinein</translation>
    </message>
    <message>
        <source>its schema is nested too deep.</source>
        <translation>sein Schema ist zu tief verschachtelt.</translation>
    </message>
    <message>
        <source>its type “sse” is an old way of connecting</source>
        <translation>sein Typ „sse“ ist eine veraltete Verbindungsart</translation>
    </message>
    <message>
        <source>its version of the format is not known</source>
        <translation>die Version des Formats ist nicht bekannt</translation>
    </message>
    <message>
        <source>its “args” are not a list of texts</source>
        <translation>seine „args“ sind keine Liste von Texten</translation>
    </message>
    <message>
        <source>its “command” is not the name of a program</source>
        <translation>sein „command“ ist nicht der Name eines Programms</translation>
    </message>
    <message>
        <source>its “url” is not a web address</source>
        <translation>seine „url“ ist keine Webadresse</translation>
    </message>
    <message>
        <source>its “{part}” is not an object of names and texts</source>
        <translation>sein „{part}“ ist kein Objekt aus Namen und Texten</translation>
    </message>
    <message>
        <source>line {line} is not text in UTF-8</source>
        <translation>Zeile {line} ist kein Text in UTF-8</translation>
    </message>
    <message>
        <source>llama.cpp caches the last prompt by itself.</source>
        <translation>llama.cpp behält den letzten Prompt von selbst im Cache.</translation>
    </message>
    <message>
        <source>llama.cpp could not load “{model}”.</source>
        <translation>llama.cpp konnte „{model}“ nicht laden.</translation>
    </message>
    <message>
        <source>no connection to {where}</source>
        <translation>keine Verbindung zu {where}</translation>
    </message>
    <message>
        <source>no connection to {where} within {seconds} seconds</source>
        <translation>keine Verbindung zu {where} innerhalb von {seconds} Sekunden</translation>
    </message>
    <message>
        <source>nothing answers at {where}</source>
        <translation>unter {where} antwortet nichts</translation>
    </message>
    <message>
        <source>nothing listens at {where}</source>
        <translation>bei {where} nimmt niemand Verbindungen an</translation>
    </message>
    <message>
        <source>one event is larger than {size} MB</source>
        <translation>ein Ereignis ist größer als {size} MB</translation>
    </message>
    <message>
        <source>one of its headers cannot be sent</source>
        <translation>eine seiner Kopfzeilen lässt sich nicht senden</translation>
    </message>
    <message>
        <source>pauses of the server in a row</source>
        <translation>Pausen des Servers nacheinander</translation>
    </message>
    <message>
        <source>removed, as it was not there before</source>
        <translation>entfernt, da sie vorher nicht da war</translation>
    </message>
    <message>
        <source>removed, as it was not there before it was undone</source>
        <translation>entfernt, da sie vor dem Rückgängigmachen nicht da war</translation>
    </message>
    <message>
        <source>ruff, checking and formatting</source>
        <translation>ruff, prüfen und formatieren</translation>
    </message>
    <message>
        <source>the answer is larger than {size} MB</source>
        <translation>die Antwort ist größer als {size} MB</translation>
    </message>
    <message>
        <source>the answer of {where} was not finished within {seconds} seconds</source>
        <translation>die Antwort von {where} war nach {seconds} Sekunden nicht fertig</translation>
    </message>
    <message>
        <source>the answer to caching a prompt is not JSON</source>
        <translation>die Antwort auf das Zwischenspeichern eines Prompts ist kein JSON</translation>
    </message>
    <message>
        <source>the backup is damaged or of another kind</source>
        <translation>die Sicherung ist beschädigt oder von anderer Art</translation>
    </message>
    <message>
        <source>the backup is too large</source>
        <translation>die Sicherung ist zu groß</translation>
    </message>
    <message>
        <source>the certificate of {host} is not trusted ({why})</source>
        <translation>dem Zertifikat von {host} wird nicht vertraut ({why})</translation>
    </message>
    <message>
        <source>the certificate of “{host}” is not trusted ({why})</source>
        <translation>dem Zertifikat von „{host}“ wird nicht vertraut ({why})</translation>
    </message>
    <message>
        <source>the certificates of trusted servers cannot be read ({why})</source>
        <translation>die Zertifikate vertrauenswürdiger Server lassen sich nicht lesen ({why})</translation>
    </message>
    <message>
        <source>the length of one answer</source>
        <translation>Länge einer Antwort</translation>
    </message>
    <message>
        <source>the longest answer that the model may give</source>
        <translation>die längste Antwort, die das Modell geben darf</translation>
    </message>
    <message>
        <source>the name {host} is not known</source>
        <translation>der Name {host} ist nicht bekannt</translation>
    </message>
    <message>
        <source>the name “{host}” is not known</source>
        <translation>der Name „{host}“ ist nicht bekannt</translation>
    </message>
    <message>
        <source>the program</source>
        <translation>dem Programm</translation>
    </message>
    <message>
        <source>the proxy of this system does not connect to “{host}” ({status})</source>
        <translation>der Proxy dieses Systems stellt keine Verbindung zu „{host}“ her ({status})</translation>
    </message>
    <message>
        <source>the proxy on the way wants a name and a password</source>
        <translation>der Proxy auf dem Weg verlangt einen Namen und ein Passwort</translation>
    </message>
    <message>
        <source>the proxy set for it is of a kind that is not supported ({kind})</source>
        <translation>der dafür eingestellte Proxy ist von einer Art, die nicht unterstützt wird ({kind})</translation>
    </message>
    <message>
        <source>the proxy {proxy} cannot be reached</source>
        <translation>der Proxy {proxy} ist nicht erreichbar</translation>
    </message>
    <message>
        <source>the proxy {proxy} does not connect to {where} ({status})</source>
        <translation>der Proxy {proxy} stellt keine Verbindung zu {where} her ({status})</translation>
    </message>
    <message>
        <source>the request is larger than {size} MB</source>
        <translation>die Anfrage ist größer als {size} MB</translation>
    </message>
    <message>
        <source>the request to {where} could not be written</source>
        <translation>die Anfrage an {where} ließ sich nicht schreiben</translation>
    </message>
    <message>
        <source>the schema of its arguments cannot be read.</source>
        <translation>das Schema seiner Argumente lässt sich nicht lesen.</translation>
    </message>
    <message>
        <source>the schema of its arguments does not say “type”: “object”.</source>
        <translation>im Schema seiner Argumente steht nicht „type“: „object“.</translation>
    </message>
    <message>
        <source>the server broke the answer off</source>
        <translation>der Server brach die Antwort ab</translation>
    </message>
    <message>
        <source>the server ended the answer with an error</source>
        <translation>der Server beendete die Antwort mit einem Fehler</translation>
    </message>
    <message>
        <source>the server lost its connection to the model</source>
        <translation>der Server verlor seine Verbindung zum Modell</translation>
    </message>
    <message>
        <source>the server says that the answer failed</source>
        <translation>der Server meldet, dass die Antwort fehlschlug</translation>
    </message>
    <message>
        <source>the server says that the answer was cancelled</source>
        <translation>der Server meldet, dass die Antwort abgebrochen wurde</translation>
    </message>
    <message>
        <source>the server stopped the answer because it ran out of resources</source>
        <translation>der Server beendete die Antwort, weil ihm Ressourcen fehlten</translation>
    </message>
    <message>
        <source>the stream carried an error without a message</source>
        <translation>der Datenstrom enthielt einen Fehler ohne Meldung</translation>
    </message>
    <message>
        <source>the stream ended without {mark}</source>
        <translation>der Datenstrom endete ohne {mark}</translation>
    </message>
    <message>
        <source>the window (process {pid})</source>
        <translation>das Fenster (Prozess {pid})</translation>
    </message>
    <message>
        <source>there is no backup</source>
        <translation>es gibt keine Sicherung</translation>
    </message>
    <message>
        <source>there is no route to {where}</source>
        <translation>es gibt keine Route zu {where}</translation>
    </message>
    <message>
        <source>there is none for {server} yet.</source>
        <translation>für {server} gibt es noch keinen.</translation>
    </message>
    <message>
        <source>time</source>
        <translation>Zeit</translation>
    </message>
    <message>
        <source>tokens</source>
        <translation>Token</translation>
    </message>
    <message>
        <source>tool rounds</source>
        <translation>Werkzeugrunden</translation>
    </message>
    <message>
        <source>turns</source>
        <translation>Runden</translation>
    </message>
    <message>
        <source>what its model can read</source>
        <translation>was sein Modell lesen kann</translation>
    </message>
    <message>
        <source>what one run may pile up in memory</source>
        <translation>was ein Lauf im Arbeitsspeicher ansammeln darf</translation>
    </message>
    <message>
        <source>you</source>
        <translation>Ihnen</translation>
    </message>
    <message>
        <source>{address} answers instead of {first}.</source>
        <translation>{address} antwortet anstelle von {first}.</translation>
    </message>
    <message>
        <source>{agent} / {step}</source>
        <translation>{agent} / {step}</translation>
    </message>
    <message>
        <source>{commands}, in every folder of the workspace</source>
        <translation>{commands}, in jedem Ordner des Arbeitsordners</translation>
    </message>
    <message>
        <source>{commands}, in the folder {folder} of the workspace</source>
        <translation>{commands}, im Ordner {folder} des Arbeitsordners</translation>
    </message>
    <message>
        <source>{commands}, in the top folder of the workspace</source>
        <translation>{commands}, direkt im Arbeitsordner</translation>
    </message>
    <message>
        <source>{count} events of the answer were damaged and could not be read. Something may be missing.</source>
        <translation>{count} Ereignisse der Antwort waren beschädigt und konnten nicht gelesen werden. Vielleicht fehlt etwas.</translation>
    </message>
    <message>
        <source>{first}, {next}</source>
        <translation>{first}, {next}</translation>
    </message>
    <message>
        <source>{host} could not be reached: {why}.</source>
        <translation>{host} war nicht erreichbar: {why}.</translation>
    </message>
    <message>
        <source>{megapixels} megapixels</source>
        <translation>{megapixels} Megapixel</translation>
    </message>
    <message>
        <source>{model} caches no prompts of fewer than {count} tokens.</source>
        <translation>{model} behält keine Prompts mit weniger als {count} Token im Cache.</translation>
    </message>
    <message>
        <source>{model} caches prompts by itself; it cannot be asked to.</source>
        <translation>{model} behält Prompts von selbst im Cache; darum bitten kann man es nicht.</translation>
    </message>
    <message>
        <source>{model} calls tools by the API “OpenAI Responses” only.</source>
        <translation>{model} ruft Werkzeuge nur über die Schnittstelle „OpenAI Responses“ auf.</translation>
    </message>
    <message>
        <source>{model} cannot be bound to JSON.</source>
        <translation>{model} kann nicht auf JSON festgelegt werden.</translation>
    </message>
    <message>
        <source>{model} cannot be made to call a tool; it decides by itself.</source>
        <translation>{model} lässt sich nicht zu einem Werkzeugaufruf bringen; es entscheidet selbst.</translation>
    </message>
    <message>
        <source>{model} cannot reason between tools only; it decides by itself.</source>
        <translation>{model} kann nicht nur zwischen Werkzeugen nachdenken; es entscheidet selbst.</translation>
    </message>
    <message>
        <source>{model} cannot stop reasoning; it was asked for its lowest level, {level}.</source>
        <translation>{model} kann nicht aufhören nachzudenken; es wurde um die niedrigste Stufe gebeten, {level}.</translation>
    </message>
    <message>
        <source>{model} cannot stop reasoning; it was given its smallest limit, {tokens} tokens.</source>
        <translation>{model} kann nicht aufhören nachzudenken; es bekam seine kleinste Grenze, {tokens} Token.</translation>
    </message>
    <message>
        <source>{model} chooses its own temperature, so none was sent.</source>
        <translation>{model} wählt seine Temperatur selbst, daher wurde keine gesendet.</translation>
    </message>
    <message>
        <source>{model} does not answer by a schema.</source>
        <translation>{model} antwortet nicht nach einem Schema.</translation>
    </message>
    <message>
        <source>{model} does not call tools.</source>
        <translation>{model} ruft keine Werkzeuge auf.</translation>
    </message>
    <message>
        <source>{model} does not read pictures.</source>
        <translation>{model} liest keine Bilder.</translation>
    </message>
    <message>
        <source>{model} does not reason, so it was not asked to.</source>
        <translation>{model} denkt nicht nach, daher wurde es nicht darum gebeten.</translation>
    </message>
    <message>
        <source>{model} has no reasoning level {asked}; it was asked for {level}.</source>
        <translation>{model} hat keine Denkstufe {asked}; es wurde um {level} gebeten.</translation>
    </message>
    <message>
        <source>{model} has no reasoning levels; for {asked} it was given {tokens} tokens.</source>
        <translation>{model} hat keine Denkstufen; für {asked} bekam es {tokens} Token.</translation>
    </message>
    <message>
        <source>{model} is served by the API “OpenAI Responses” only.</source>
        <translation>{model} gibt es nur über die Schnittstelle „OpenAI Responses“.</translation>
    </message>
    <message>
        <source>{model} reasons with {least} to {most} tokens; it was given {tokens}.</source>
        <translation>{model} denkt mit {least} bis {most} Token nach; es bekam {tokens}.</translation>
    </message>
    <message>
        <source>{model} takes no number of tokens to reason with; it was asked for the level {level}.</source>
        <translation>{model} nimmt keine Tokenzahl zum Nachdenken an; es wurde um die Stufe {level} gebeten.</translation>
    </message>
    <message>
        <source>{path}: {state}</source>
        <translation>{path}: {state}</translation>
    </message>
    <message>
        <source>{picture} is sent as {after}: this model does not read {before}.</source>
        <translation>{picture} wird als {after} gesendet: Dieses Modell liest kein {before}.</translation>
    </message>
    <message>
        <source>{picture} is sent with less detail, in {size}: this model takes {limit}.</source>
        <translation>{picture} wird mit weniger Einzelheiten gesendet, in {size}: Dieses Modell nimmt {limit} an.</translation>
    </message>
    <message>
        <source>{picture} is sent with {after} instead of {before} pixels: this model takes no more.</source>
        <translation>{picture} wird mit {after} statt {before} Pixeln gesendet: Mehr nimmt dieses Modell nicht an.</translation>
    </message>
    <message>
        <source>{picture} is sent without its movement: this model reads still pictures only.</source>
        <translation>{picture} wird ohne Bewegung gesendet: Dieses Modell liest nur Standbilder.</translation>
    </message>
    <message>
        <source>{pixels} pixels beside {count} others</source>
        <translation>{pixels} Pixel neben {count} anderen Bildern</translation>
    </message>
    <message>
        <source>{pixels} pixels on one side</source>
        <translation>{pixels} Pixel an einer Seite</translation>
    </message>
    <message>
        <source>{remedy} It can be tried again in {n} s.</source>
        <translation>{remedy} In {n} s kann es erneut versucht werden.</translation>
    </message>
    <message>
        <source>{remedy} Then import again; what is here already is left alone.</source>
        <translation>{remedy} Importieren Sie dann noch einmal; was schon hier ist, bleibt unberührt.</translation>
    </message>
    <message>
        <source>{remedy} {readable}</source>
        <translation>{remedy} {readable}</translation>
    </message>
    <message>
        <source>{rule}; what comes from there is trusted</source>
        <translation>{rule}; was von dort kommt, wird als vertrauenswürdig behandelt</translation>
    </message>
    <message>
        <source>{some} and {last}</source>
        <translation>{some} und {last}</translation>
    </message>
    <message>
        <source>{some} or {last}</source>
        <translation>{some} oder {last}</translation>
    </message>
    <message>
        <source>{title}: commands that begin with {commands}</source>
        <translation>{title}: Befehle, die mit {commands} beginnen</translation>
    </message>
    <message>
        <source>{tool} ({server})</source>
        <translation>{tool} ({server})</translation>
    </message>
    <message>
        <source>{tool} anywhere in the workspace {folder}</source>
        <translation>{tool} überall im Arbeitsordner {folder}</translation>
    </message>
    <message>
        <source>{tool} for the workspace {folder}</source>
        <translation>{tool} für den Arbeitsordner {folder}</translation>
    </message>
    <message>
        <source>{tool} in {folder}</source>
        <translation>{tool} in {folder}</translation>
    </message>
    <message>
        <source>{tool} with any arguments</source>
        <translation>{tool} mit beliebigen Argumenten</translation>
    </message>
    <message>
        <source>{tool} with exactly these arguments</source>
        <translation>{tool} mit genau diesen Argumenten</translation>
    </message>
    <message>
        <source>{tool} with exactly these arguments: {arguments}</source>
        <translation>{tool} mit genau diesen Argumenten: {arguments}</translation>
    </message>
    <message>
        <source>{tool} with {host}</source>
        <translation>{tool} mit {host}</translation>
    </message>
    <message>
        <source>{tool} · {arguments}</source>
        <translation>{tool} · {arguments}</translation>
    </message>
    <message>
        <source>{tool}, as it is described now,</source>
        <translation>{tool}, wie es jetzt beschrieben ist,</translation>
    </message>
    <message>
        <source>{tool}: {outcome}</source>
        <translation>{tool}: {outcome}</translation>
    </message>
    <message>
        <source>{what} ({count} unreadable events)</source>
        <translation>{what} (unlesbare Ereignisse: {count})</translation>
    </message>
    <message>
        <source>{what} The provider says: {why}</source>
        <translation>{what} Der Anbieter sagt: {why}</translation>
    </message>
    <message>
        <source>{what} The provider says: {why} ({category})</source>
        <translation>{what} Der Anbieter sagt: {why} ({category})</translation>
    </message>
    <message>
        <source>{what} What it said so far:
{said}

</source>
        <translation>{what} Was er bisher gesagt hat:
{said}

</translation>
    </message>
    <message>
        <source>{what} needs parts that are not installed.</source>
        <translation>{what} braucht Teile, die nicht installiert sind.</translation>
    </message>
    <message>
        <source>{what} {remedy}</source>
        <translation>{what} {remedy}</translation>
    </message>
    <message>
        <source>{what}.</source>
        <translation>{what}.</translation>
    </message>
    <message>
        <source>{where} broke the rules of HTTP in the middle</source>
        <translation>{where} hielt sich mittendrin nicht an die Regeln von HTTP</translation>
    </message>
    <message>
        <source>{where} closed the connection</source>
        <translation>{where} schloss die Verbindung</translation>
    </message>
    <message>
        <source>{where} closed the connection without an answer</source>
        <translation>{where} schloss die Verbindung ohne Antwort</translation>
    </message>
    <message>
        <source>{where} did not begin to answer within {seconds} seconds</source>
        <translation>{where} begann nicht innerhalb von {seconds} Sekunden zu antworten</translation>
    </message>
    <message>
        <source>{where} did not take the request for {seconds} seconds</source>
        <translation>{where} nahm die Anfrage {seconds} Sekunden lang nicht an</translation>
    </message>
    <message>
        <source>{where} does not speak TLS as expected</source>
        <translation>{where} spricht TLS nicht wie erwartet</translation>
    </message>
    <message>
        <source>{where} kept the connection open, but sent nothing more of the answer</source>
        <translation>{where} hielt die Verbindung offen, sendete aber nichts weiter von der Antwort</translation>
    </message>
    <message>
        <source>{where} said nothing for {seconds} seconds</source>
        <translation>{where} sagte {seconds} Sekunden lang nichts</translation>
    </message>
    <message>
        <source>{who} on “{host}”</source>
        <translation>{who} auf „{host}“</translation>
    </message>
    <message>
        <source>{why} (all {count} addresses were tried)</source>
        <translation>{why} (alle {count} Adressen wurden versucht)</translation>
    </message>
    <message>
        <source>{why} Imported before that, and kept: {added}.</source>
        <translation>{why} Davor importiert und behalten: {added}.</translation>
    </message>
    <message>
        <source>“desktop-agent ask” (process {pid})</source>
        <translation>„desktop-agent ask“ (Prozess {pid})</translation>
    </message>
    <message>
        <source>“{address}” does not begin with http:// or https://.</source>
        <translation>„{address}“ beginnt nicht mit http:// oder https://.</translation>
    </message>
    <message>
        <source>“{address}” is not an address.</source>
        <translation>„{address}“ ist keine Adresse.</translation>
    </message>
    <message>
        <source>“{address}” names no server.</source>
        <translation>„{address}“ nennt keinen Server.</translation>
    </message>
    <message>
        <source>“{command}”</source>
        <translation>„{command}“</translation>
    </message>
    <message>
        <source>“{database}” is gone, while its log was still there. The log is kept as “{copy}”, and an empty database is begun. If you have the file, close the program, put it back, name the log “{log}” again, and start the program.</source>
        <translation>„{database}“ fehlt, aber das Protokoll davon war noch da. Das Protokoll ist als „{copy}“ aufbewahrt, und eine leere Datenbank wurde begonnen. Wenn Sie die Datei haben, schließen Sie das Programm, legen Sie sie zurück, nennen Sie das Protokoll wieder „{log}“, und starten Sie das Programm.</translation>
    </message>
    <message>
        <source>“{file}” may be what another program runs: links in the workspace give it too many names to look at.</source>
        <translation>Was in „{file}“ steht, führt vielleicht ein anderes Programm aus: Verknüpfungen im Arbeitsordner geben der Datei mehr Namen, als sich prüfen lassen.</translation>
    </message>
    <message>
        <source>“{folder}” is not a finished backup.</source>
        <translation>„{folder}“ ist keine fertige Sicherung.</translation>
    </message>
    <message>
        <source>“{folder}” is not empty.</source>
        <translation>„{folder}“ ist nicht leer.</translation>
    </message>
    <message>
        <source>“{host}” could not be reached.</source>
        <translation>„{host}“ war nicht erreichbar.</translation>
    </message>
    <message>
        <source>“{host}” does not answer.</source>
        <translation>„{host}“ antwortet nicht.</translation>
    </message>
    <message>
        <source>“{host}” has no encrypted address (https).</source>
        <translation>„{host}“ hat keine verschlüsselte Adresse (https).</translation>
    </message>
    <message>
        <source>“{host}” has no page there (status {status}).</source>
        <translation>„{host}“ hat dort keine Seite (Status {status}).</translation>
    </message>
    <message>
        <source>“{host}” has no picture there (status {status}).</source>
        <translation>„{host}“ hat dort kein Bild (Status {status}).</translation>
    </message>
    <message>
        <source>“{host}” is not a public server.</source>
        <translation>„{host}“ ist kein öffentlicher Server.</translation>
    </message>
    <message>
        <source>“{host}” is not a public server: its address is {address}.</source>
        <translation>„{host}“ ist kein öffentlicher Server: Seine Adresse ist {address}.</translation>
    </message>
    <message>
        <source>“{host}” leads to the private address {address}. Only the person can allow that host, in Settings → Network.</source>
        <translation>„{host}“ führt zur privaten Adresse {address}. Nur der Benutzer kann diesen Host erlauben, unter Einstellungen → Netzwerk.</translation>
    </message>
    <message>
        <source>“{host}” names no version (status {status}).</source>
        <translation>„{host}“ nennt keine Version (Status {status}).</translation>
    </message>
    <message>
        <source>“{host}” redirects to another server, which is not allowed.</source>
        <translation>„{host}“ leitet zu einem anderen Server weiter, was nicht erlaubt ist.</translation>
    </message>
    <message>
        <source>“{host}” redirects without end.</source>
        <translation>„{host}“ leitet endlos weiter.</translation>
    </message>
    <message>
        <source>“{host}” took longer than {seconds} seconds.</source>
        <translation>„{host}“ brauchte länger als {seconds} Sekunden.</translation>
    </message>
    <message>
        <source>“{model}” always reasons, so it reasons as it does by itself.</source>
        <translation>„{model}“ denkt immer nach, daher tut es das, wie es von sich aus tut.</translation>
    </message>
    <message>
        <source>“{model}” always reasons, so it reasons at “{effort}”.</source>
        <translation>„{model}“ denkt immer nach, daher mit „{effort}“.</translation>
    </message>
    <message>
        <source>“{model}” answers with at most {most} tokens, so that is the limit.</source>
        <translation>„{model}“ antwortet mit höchstens {most} Token, daher ist das die Grenze.</translation>
    </message>
    <message>
        <source>“{model}” cannot be made to call a tool, so it decides by itself.</source>
        <translation>„{model}“ lässt sich nicht zu einem Werkzeugaufruf bringen, daher entscheidet es selbst.</translation>
    </message>
    <message>
        <source>“{model}” does not call tools.</source>
        <translation>„{model}“ ruft keine Werkzeuge auf.</translation>
    </message>
    <message>
        <source>“{model}” does not choose by itself how much to reason, so it does not.</source>
        <translation>„{model}“ wählt nicht selbst, wie viel es nachdenkt, daher denkt es nicht nach.</translation>
    </message>
    <message>
        <source>“{model}” does not read pictures.</source>
        <translation>„{model}“ liest keine Bilder.</translation>
    </message>
    <message>
        <source>“{model}” does not reason here while it has tools; by the API “OpenAI Responses” it can.</source>
        <translation>„{model}“ denkt hier nicht nach, solange es Werkzeuge hat; mit der Schnittstelle „OpenAI Responses“ kann es das.</translation>
    </message>
    <message>
        <source>“{model}” does not take {names} while it reasons, so that was left out.</source>
        <translation>„{model}“ nimmt {names} nicht an, während es nachdenkt, daher wurde das weggelassen.</translation>
    </message>
    <message>
        <source>“{model}” has no reasoning level “{wanted}”, so it reasons at “{effort}”.</source>
        <translation>„{model}“ hat keine Denkstufe „{wanted}“, daher denkt es mit „{effort}“ nach.</translation>
    </message>
    <message>
        <source>“{model}” is asked in words to answer in JSON: nothing makes sure that it does.</source>
        <translation>„{model}“ wird mit Worten gebeten, in JSON zu antworten: Nichts stellt sicher, dass es das tut.</translation>
    </message>
    <message>
        <source>“{model}” is still answering, and only one model runs at a time.</source>
        <translation>„{model}“ antwortet noch, und es läuft immer nur ein Modell.</translation>
    </message>
    <message>
        <source>“{model}” is told the schema in words: only that it is JSON is made sure.</source>
        <translation>„{model}“ erfährt das Schema in Worten: Sichergestellt ist nur, dass es JSON ist.</translation>
    </message>
    <message>
        <source>“{model}” takes no stop sequences, so they were left out.</source>
        <translation>„{model}“ nimmt keine Stoppfolgen an, daher wurden sie weggelassen.</translation>
    </message>
    <message>
        <source>“{model}” was not loaded in time.</source>
        <translation>„{model}“ wurde nicht rechtzeitig geladen.</translation>
    </message>
    <message>
        <source>“{model}” was stopped.</source>
        <translation>„{model}“ wurde beendet.</translation>
    </message>
    <message>
        <source>“{model}” was unloaded, because nobody used it.</source>
        <translation>„{model}“ wurde entladen, weil es nicht benutzt wurde.</translation>
    </message>
    <message>
        <source>“{name}” cannot be read: {why}.</source>
        <translation>„{name}“ kann nicht gelesen werden: {why}.</translation>
    </message>
    <message>
        <source>“{name}” cannot be the name of a tool.</source>
        <translation>„{name}“ kann nicht der Name eines Werkzeugs sein.</translation>
    </message>
    <message>
        <source>“{name}” cannot be the name of an argument.</source>
        <translation>„{name}“ kann nicht der Name eines Arguments sein.</translation>
    </message>
    <message>
        <source>“{name}” could not be started: {why}.</source>
        <translation>„{name}“ konnte nicht gestartet werden: {why}.</translation>
    </message>
    <message>
        <source>“{name}” has no text: its pages are pictures.</source>
        <translation>„{name}“ enthält keinen Text: Die Seiten sind Bilder.</translation>
    </message>
    <message>
        <source>“{name}” is a PDF that cannot be read.</source>
        <translation>„{name}“ ist ein PDF, das sich nicht lesen lässt.</translation>
    </message>
    <message>
        <source>“{name}” is a folder, not a program.</source>
        <translation>„{name}“ ist ein Ordner und kein Programm.</translation>
    </message>
    <message>
        <source>“{name}” is a part of a model, and cannot answer by itself.</source>
        <translation>„{name}“ ist ein Teil eines Modells und kann nicht allein antworten.</translation>
    </message>
    <message>
        <source>“{name}” is larger than {limit}.</source>
        <translation>„{name}“ ist größer als {limit}.</translation>
    </message>
    <message>
        <source>“{name}” is not a model in the GGUF format: {why}.</source>
        <translation>„{name}“ ist kein Modell im GGUF-Format: {why}.</translation>
    </message>
    <message>
        <source>“{name}” is not a program that this computer can run.</source>
        <translation>„{name}“ ist kein Programm, das dieser Computer ausführen kann.</translation>
    </message>
    <message>
        <source>“{name}” is protected by a password.</source>
        <translation>„{name}“ ist durch ein Passwort geschützt.</translation>
    </message>
    <message>
        <source>“{name}” let the work go on.</source>
        <translation>„{name}“ hat die Arbeit weitergehen lassen.</translation>
    </message>
    <message>
        <source>“{name}” was not called: agents may call each other {depth} deep at most.</source>
        <translation>„{name}“ wurde nicht aufgerufen: Agenten dürfen einander höchstens {depth} Ebenen tief aufrufen.</translation>
    </message>
    <message>
        <source>“{name}” was not called: its mode “{mode}” does not exist.</source>
        <translation>„{name}“ wurde nicht aufgerufen: Sein Modus „{mode}“ existiert nicht.</translation>
    </message>
    <message>
        <source>“{name}” was not read: it holds no conversations.</source>
        <translation>„{name}“ wurde nicht gelesen: Es enthält keine Unterhaltungen.</translation>
    </message>
    <message>
        <source>“{path}” also has other names on this disk. Under those, the current content stays.</source>
        <translation>„{path}“ hat auf diesem Datenträger noch andere Namen. Unter diesen bleibt der jetzige Inhalt.</translation>
    </message>
    <message>
        <source>“{path}” begins with ~, which stands for a home folder; write the path inside the workspace.</source>
        <translation>„{path}“ beginnt mit ~, das für einen persönlichen Ordner steht; schreiben Sie den Pfad innerhalb des Arbeitsordners.</translation>
    </message>
    <message>
        <source>“{path}” cannot be read now, so it could not be saved first; it was left as it is.</source>
        <translation>„{path}“ lässt sich jetzt nicht lesen und konnte daher nicht vorher gesichert werden; es blieb, wie es ist.</translation>
    </message>
    <message>
        <source>“{path}” cannot be read: {why}.</source>
        <translation>„{path}“ lässt sich nicht lesen: {why}.</translation>
    </message>
    <message>
        <source>“{path}” cannot be used: {reason}.</source>
        <translation>„{path}“ lässt sich nicht verwenden: {reason}.</translation>
    </message>
    <message>
        <source>“{path}” cannot be used: {why}.</source>
        <translation>„{path}“ lässt sich nicht verwenden: {why}.</translation>
    </message>
    <message>
        <source>“{path}” cannot be written to.</source>
        <translation>„{path}“ lässt sich nicht beschreiben.</translation>
    </message>
    <message>
        <source>“{path}” changed while it was being followed; nothing was touched.</source>
        <translation>„{path}“ änderte sich, während ihm gefolgt wurde; nichts wurde angerührt.</translation>
    </message>
    <message>
        <source>“{path}” contains a colon, which names a drive or a hidden stream on Windows.</source>
        <translation>„{path}“ enthält einen Doppelpunkt, der unter Windows ein Laufwerk oder einen verborgenen Datenstrom bezeichnet.</translation>
    </message>
    <message>
        <source>“{path}” contains a control character.</source>
        <translation>„{path}“ enthält ein Steuerzeichen.</translation>
    </message>
    <message>
        <source>“{path}” contains half a character.</source>
        <translation>„{path}“ enthält ein halbes Zeichen.</translation>
    </message>
    <message>
        <source>“{path}” could not be read before the call, so it was not saved.</source>
        <translation>„{path}“ ließ sich vor dem Aufruf nicht lesen und wurde daher nicht gesichert.</translation>
    </message>
    <message>
        <source>“{path}” ends in a dot or a space, which Windows would drop.</source>
        <translation>„{path}“ endet mit einem Punkt oder Leerzeichen, die Windows weglassen würde.</translation>
    </message>
    <message>
        <source>“{path}” exists already.</source>
        <translation>„{path}“ existiert schon.</translation>
    </message>
    <message>
        <source>“{path}” holds no conversations that this version can read.</source>
        <translation>„{path}“ enthält keine Unterhaltungen, die diese Version lesen kann.</translation>
    </message>
    <message>
        <source>“{path}” is a PDF, not a picture.</source>
        <translation>„{path}“ ist ein PDF, kein Bild.</translation>
    </message>
    <message>
        <source>“{path}” is a different file now. Check again what would be undone.</source>
        <translation>„{path}“ ist jetzt eine andere Datei. Prüfen Sie noch einmal, was rückgängig gemacht würde.</translation>
    </message>
    <message>
        <source>“{path}” is a file of the data folder, which no export replaces.</source>
        <translation>„{path}“ ist eine Datei des Datenordners, die kein Export ersetzt.</translation>
    </message>
    <message>
        <source>“{path}” is a file, and this export is a folder of files.</source>
        <translation>„{path}“ ist eine Datei, und dieser Export ist ein Ordner mit Dateien.</translation>
    </message>
    <message>
        <source>“{path}” is a file, not a folder.</source>
        <translation>„{path}“ ist eine Datei, kein Ordner.</translation>
    </message>
    <message>
        <source>“{path}” is a file, where a folder is needed.</source>
        <translation>„{path}“ ist eine Datei; hier wird ein Ordner gebraucht.</translation>
    </message>
    <message>
        <source>“{path}” is a folder now, with something in it that belongs to somebody else.</source>
        <translation>„{path}“ ist jetzt ein Ordner, in dem etwas liegt, das jemand anderem gehört.</translation>
    </message>
    <message>
        <source>“{path}” is a folder with something in it.</source>
        <translation>„{path}“ ist ein Ordner, in dem etwas liegt.</translation>
    </message>
    <message>
        <source>“{path}” is a folder, and this export is one file.</source>
        <translation>„{path}“ ist ein Ordner, und dieser Export ist eine Datei.</translation>
    </message>
    <message>
        <source>“{path}” is a folder, not a file.</source>
        <translation>„{path}“ ist ein Ordner, keine Datei.</translation>
    </message>
    <message>
        <source>“{path}” is a folder; only files are moved.</source>
        <translation>„{path}“ ist ein Ordner; nur Dateien werden verschoben.</translation>
    </message>
    <message>
        <source>“{path}” is a link that cannot be followed; nothing was touched.</source>
        <translation>„{path}“ ist eine Verknüpfung, der sich nicht folgen lässt; nichts wurde angerührt.</translation>
    </message>
    <message>
        <source>“{path}” is an absolute path with “..” in it; write it relative to the workspace folder.</source>
        <translation>„{path}“ ist ein absoluter Pfad mit „..“ darin; schreiben Sie ihn relativ zum Arbeitsordner.</translation>
    </message>
    <message>
        <source>“{path}” is an empty folder.</source>
        <translation>„{path}“ ist ein leerer Ordner.</translation>
    </message>
    <message>
        <source>“{path}” is being written to by another program.</source>
        <translation>„{path}“ wird gerade von einem anderen Programm beschrieben.</translation>
    </message>
    <message>
        <source>“{path}” is damaged and cannot be read.</source>
        <translation>„{path}“ ist beschädigt und kann nicht gelesen werden.</translation>
    </message>
    <message>
        <source>“{path}” is gone: it was removed or moved.</source>
        <translation>„{path}“ ist weg: Es wurde entfernt oder verschoben.</translation>
    </message>
    <message>
        <source>“{path}” is larger than 256 MB now, so it could not be saved first; it was left as it is.</source>
        <translation>„{path}“ ist jetzt größer als 256 MB und konnte daher nicht vorher gesichert werden; es blieb, wie es ist.</translation>
    </message>
    <message>
        <source>“{path}” is larger than {limit} MB.</source>
        <translation>„{path}“ ist größer als {limit} MB.</translation>
    </message>
    <message>
        <source>“{path}” is neither a file nor a folder.</source>
        <translation>„{path}“ ist weder eine Datei noch ein Ordner.</translation>
    </message>
    <message>
        <source>“{path}” is no longer an ordinary file, so it could not be saved first; it was left as it is.</source>
        <translation>„{path}“ ist keine gewöhnliche Datei mehr und konnte daher nicht vorher gesichert werden. Die Datei blieb, wie sie ist.</translation>
    </message>
    <message>
        <source>“{path}” is not a folder of the workspace.</source>
        <translation>„{path}“ ist kein Ordner im Arbeitsordner.</translation>
    </message>
    <message>
        <source>“{path}” is not a picture that can be shown.</source>
        <translation>„{path}“ ist kein Bild, das gezeigt werden kann.</translation>
    </message>
    <message>
        <source>“{path}” is not an ordinary file, so no export can replace it.</source>
        <translation>„{path}“ ist keine gewöhnliche Datei, daher kann kein Export sie ersetzen.</translation>
    </message>
    <message>
        <source>“{path}” is not an ordinary file.</source>
        <translation>„{path}“ ist keine gewöhnliche Datei.</translation>
    </message>
    <message>
        <source>“{path}” is not text and cannot be edited.</source>
        <translation>„{path}“ ist kein Text und lässt sich nicht bearbeiten.</translation>
    </message>
    <message>
        <source>“{path}” is not text, or too long to be shown line by line.</source>
        <translation>„{path}“ ist kein Text oder zu lang, um Zeile für Zeile gezeigt zu werden.</translation>
    </message>
    <message>
        <source>“{path}” is on a read-only disk.</source>
        <translation>„{path}“ liegt auf einem Datenträger, der nur gelesen werden kann.</translation>
    </message>
    <message>
        <source>“{path}” is on another disk and cannot be moved there; write a copy and delete the old file.</source>
        <translation>„{path}“ liegt auf einem anderen Datenträger und kann nicht dorthin verschoben werden; schreiben Sie eine Kopie, und löschen Sie die alte Datei.</translation>
    </message>
    <message>
        <source>“{path}” is outside the workspace folder.</source>
        <translation>„{path}“ liegt außerhalb des Arbeitsordners.</translation>
    </message>
    <message>
        <source>“{path}” is packed in a way that cannot be read here.</source>
        <translation>„{path}“ ist auf eine Weise gepackt, die hier nicht gelesen werden kann.</translation>
    </message>
    <message>
        <source>“{path}” is protected by a password.</source>
        <translation>„{path}“ ist mit einem Passwort geschützt.</translation>
    </message>
    <message>
        <source>“{path}” is the name of a device on Windows.</source>
        <translation>„{path}“ ist der Name eines Geräts unter Windows.</translation>
    </message>
    <message>
        <source>“{path}” is there already.</source>
        <translation>„{path}“ ist schon da.</translation>
    </message>
    <message>
        <source>“{path}” is too long for a path.</source>
        <translation>„{path}“ ist zu lang für einen Pfad.</translation>
    </message>
    <message>
        <source>“{path}” is write-protected.</source>
        <translation>„{path}“ ist schreibgeschützt.</translation>
    </message>
    <message>
        <source>“{path}” is {what} of {size} bytes and cannot be read as text.</source>
        <translation>„{path}“ ist {what} mit {size} Byte und lässt sich nicht als Text lesen.</translation>
    </message>
    <message>
        <source>“{path}” leads out of the workspace folder.</source>
        <translation>„{path}“ führt aus dem Arbeitsordner hinaus.</translation>
    </message>
    <message>
        <source>“{path}” leads to “{real}” now.</source>
        <translation>„{path}“ führt jetzt zu „{real}“.</translation>
    </message>
    <message>
        <source>“{path}” stays as it is.</source>
        <translation>„{path}“ bleibt, wie es ist.</translation>
    </message>
    <message>
        <source>“{path}” was changed by another program meanwhile.</source>
        <translation>„{path}“ wurde inzwischen von einem anderen Programm geändert.</translation>
    </message>
    <message>
        <source>“{path}” was changed since; it was left as it is.</source>
        <translation>„{path}“ wurde seither geändert; es blieb, wie es ist.</translation>
    </message>
    <message>
        <source>“{path}” was larger than 256 MB and not saved.</source>
        <translation>„{path}“ war größer als 256 MB und wurde nicht gesichert.</translation>
    </message>
    <message>
        <source>“{path}” was not an ordinary file, so it was not saved.</source>
        <translation>„{path}“ war keine gewöhnliche Datei und wurde daher nicht gesichert.</translation>
    </message>
    <message>
        <source>“{path}” was replaced by another file while it was open, and that one cannot be read.</source>
        <translation>„{path}“ wurde durch eine andere Datei ersetzt, während es offen war, und diese lässt sich nicht lesen.</translation>
    </message>
    <message>
        <source>“{path}” was replaced by another file while it was open.</source>
        <translation>„{path}“ wurde durch eine andere Datei ersetzt, während es offen war.</translation>
    </message>
    <message>
        <source>“{path}” was replaced by another file while it was open. What was in it is kept as “{copy}”.</source>
        <translation>„{path}“ wurde durch eine andere Datei ersetzt, während es offen war. Der bisherige Inhalt ist als „{copy}“ aufbewahrt.</translation>
    </message>
    <message>
        <source>“{seq}” is not a place in a run.</source>
        <translation>„{seq}“ ist keine Stelle in einem Lauf.</translation>
    </message>
    <message>
        <source>“{server}”</source>
        <translation>„{server}“</translation>
    </message>
    <message>
        <source>“{tool}”</source>
        <translation>„{tool}“</translation>
    </message>
    <message>
        <source>“{tool}” already began to undo this. Whether that worked is not known, so it is not tried again.</source>
        <translation>„{tool}“ hat schon einmal begonnen, das rückgängig zu machen. Ob es gelang, ist nicht bekannt; daher wird es nicht noch einmal versucht.</translation>
    </message>
    <message>
        <source>“{tool}” could not undo it: {why}</source>
        <translation>„{tool}“ konnte es nicht rückgängig machen: {why}</translation>
    </message>
    <message>
        <source>“{url}” is not a web address.</source>
        <translation>„{url}“ ist keine Webadresse.</translation>
    </message>
    <message>
        <source>“{where}” did not answer within {n} seconds</source>
        <translation>„{where}“ antwortete nicht innerhalb von {n} Sekunden</translation>
    </message>
    <message>
        <source>“{where}” does not speak TLS as expected</source>
        <translation>„{where}“ spricht TLS nicht wie erwartet</translation>
    </message>
    <message>
        <source>“{where}” is not an address that can be asked.</source>
        <translation>„{where}“ ist keine Adresse, die gefragt werden kann.</translation>
    </message>
    <message>
        <source>A link can start a conversation, or open one or a message in it.</source>
        <translation>Ein Link kann eine Unterhaltung beginnen oder eine Unterhaltung oder eine Nachricht darin öffnen.</translation>
    </message>
    <message>
        <source>An attachment is not loaded yet.</source>
        <translation>Ein Anhang ist noch nicht geladen.</translation>
    </message>
    <message>
        <source>An automatic backup is being written. This begins by itself when it is done.</source>
        <translation>Gerade wird eine automatische Sicherung geschrieben. Danach beginnt das von selbst.</translation>
    </message>
    <message>
        <source>Another program already uses {keys}.</source>
        <translation>Ein anderes Programm verwendet {keys} schon.</translation>
    </message>
    <message>
        <source>Archived conversations: {count}.</source>
        <translation>Archivierte Unterhaltungen: {count}.</translation>
    </message>
    <message>
        <source>Archived “{title}”.</source>
        <translation>„{title}“ ist archiviert.</translation>
    </message>
    <message>
        <source>Ask the agent to read it in parts by a tool of the server.</source>
        <translation>Bitten Sie den Agenten, es mit einem Werkzeug des Servers in Teilen zu lesen.</translation>
    </message>
    <message>
        <source>Ask the agent to work with it by a tool of the server.</source>
        <translation>Bitten Sie den Agenten, mit einem Werkzeug des Servers damit zu arbeiten.</translation>
    </message>
    <message>
        <source>Asking the server for its models…</source>
        <translation>Der Server wird nach seinen Modellen gefragt…</translation>
    </message>
    <message>
        <source>Asking {title} for its models…</source>
        <translation>{title} wird nach seinen Modellen gefragt…</translation>
    </message>
    <message>
        <source>Asking “{host}”…</source>
        <translation>„{host}“ wird gefragt…</translation>
    </message>
    <message>
        <source>At 100 % no model is asked any more.</source>
        <translation>Bei 100 % wird kein Modell mehr gefragt.</translation>
    </message>
    <message>
        <source>Attach only the part that matters.</source>
        <translation>Hängen Sie nur den wichtigen Teil an.</translation>
    </message>
    <message>
        <source>Backups and copies that still have what was deleted for good: {count}.</source>
        <translation>Sicherungen und Kopien, die endgültig Gelöschtes noch enthalten: {count}.</translation>
    </message>
    <message>
        <source>Backups and copies that still have what was deleted for good: {count}. Damaged files that may have it too: {damaged}.</source>
        <translation>Sicherungen und Kopien, die endgültig Gelöschtes noch enthalten: {count}. Beschädigte Dateien, die es vielleicht auch enthalten: {damaged}.</translation>
    </message>
    <message>
        <source>Backups and copies that were deleted: {count}.</source>
        <translation>Gelöschte Sicherungen und Kopien: {count}.</translation>
    </message>
    <message>
        <source>Backups were written into folders that are not there now, and may have it too: {folders}.</source>
        <translation>Sicherungen wurden auch in Ordner geschrieben, die jetzt nicht da sind, und können es ebenfalls enthalten: {folders}.</translation>
    </message>
    <message>
        <source>Bind the command “desktop-agent --quick-ask” to a key in the settings of your desktop.</source>
        <translation>Legen Sie den Befehl „desktop-agent --quick-ask“ in den Einstellungen Ihres Desktops auf eine Taste.</translation>
    </message>
    <message>
        <source>Brought back conversations: {count}.</source>
        <translation>Zurückgeholte Unterhaltungen: {count}.</translation>
    </message>
    <message>
        <source>Brought back “{title}”.</source>
        <translation>„{title}“ ist zurückgeholt.</translation>
    </message>
    <message>
        <source>Cancelled. Everything is as it was.</source>
        <translation>Abgebrochen. Alles ist, wie es war.</translation>
    </message>
    <message>
        <source>Change it in the settings of your desktop.</source>
        <translation>Ändern Sie es in den Einstellungen Ihres Desktops.</translation>
    </message>
    <message>
        <source>Change the files back by hand.</source>
        <translation>Ändern Sie die Dateien von Hand zurück.</translation>
    </message>
    <message>
        <source>Changed the folder “{name}”.</source>
        <translation>Der Ordner „{name}“ wurde geändert.</translation>
    </message>
    <message>
        <source>Changed the tags of “{title}”.</source>
        <translation>Die Schlagwörter von „{title}“ sind geändert.</translation>
    </message>
    <message>
        <source>Check the address. If the server does not list its models, type the name of one.</source>
        <translation>Prüfen Sie die Adresse. Wenn der Server seine Modelle nicht auflistet, geben Sie den Namen eines Modells ein.</translation>
    </message>
    <message>
        <source>Check the disk and its free space.</source>
        <translation>Prüfen Sie den Datenträger und seinen freien Platz.</translation>
    </message>
    <message>
        <source>Choose a picture or a text.</source>
        <translation>Wählen Sie ein Bild oder einen Text.</translation>
    </message>
    <message>
        <source>Choose another folder, or change its rights.</source>
        <translation>Wählen Sie einen anderen Ordner, oder ändern Sie seine Rechte.</translation>
    </message>
    <message>
        <source>Choose another folder, or change the rights of this one.</source>
        <translation>Wählen Sie einen anderen Ordner, oder ändern Sie die Rechte dieses Ordners.</translation>
    </message>
    <message>
        <source>Choose another name or another folder.</source>
        <translation>Wählen Sie einen anderen Namen oder einen anderen Ordner.</translation>
    </message>
    <message>
        <source>Choose another resource.</source>
        <translation>Wählen Sie eine andere Ressource.</translation>
    </message>
    <message>
        <source>Choose other keys, or take these from that program.</source>
        <translation>Wählen Sie andere Tasten, oder nehmen Sie diese dem anderen Programm.</translation>
    </message>
    <message>
        <source>Choose other keys.</source>
        <translation>Wählen Sie andere Tasten.</translation>
    </message>
    <message>
        <source>Choose the keys again, and agree when your desktop asks.</source>
        <translation>Wählen Sie die Tasten noch einmal, und stimmen Sie zu, wenn Ihr Desktop fragt.</translation>
    </message>
    <message>
        <source>Choose the keys again.</source>
        <translation>Wählen Sie die Tasten noch einmal.</translation>
    </message>
    <message>
        <source>Compacted: {before} before, {after} now.</source>
        <translation>Verdichtet: vorher {before}, jetzt {after}.</translation>
    </message>
    <message>
        <source>Compacting…</source>
        <translation>Wird verdichtet…</translation>
    </message>
    <message>
        <source>Connected.</source>
        <translation>Verbunden.</translation>
    </message>
    <message>
        <source>Connected. Its address is {address}.</source>
        <translation>Verbunden. Seine Adresse ist {address}.</translation>
    </message>
    <message>
        <source>Continue it here, then change it.</source>
        <translation>Setzen Sie sie hier fort, und ändern Sie sie dann.</translation>
    </message>
    <message>
        <source>Conversations of {programs} were found on this computer.</source>
        <translation>Auf diesem Computer wurden Unterhaltungen von {programs} gefunden.</translation>
    </message>
    <message>
        <source>Conversations put into the trash: {count}.</source>
        <translation>In den Papierkorb gelegte Unterhaltungen: {count}.</translation>
    </message>
    <message>
        <source>Copy what you have written, close the window, and install it again.</source>
        <translation>Kopieren Sie, was Sie geschrieben haben, schließen Sie das Fenster, und installieren Sie das Programm neu.</translation>
    </message>
    <message>
        <source>Damaged files that may still have what was deleted for good: {damaged}.</source>
        <translation>Beschädigte Dateien, die endgültig Gelöschtes vielleicht noch enthalten: {damaged}.</translation>
    </message>
    <message>
        <source>Deleted meanwhile, so not exported ({count}): {titles}.</source>
        <translation>Inzwischen gelöscht und daher nicht exportiert ({count}): {titles}.</translation>
    </message>
    <message>
        <source>Deleting…</source>
        <translation>Wird gelöscht…</translation>
    </message>
    <message>
        <source>Desktop Agent cannot start: a part of it is missing or damaged.</source>
        <translation>Desktop Agent kann nicht starten: Ein Teil davon fehlt oder ist beschädigt.</translation>
    </message>
    <message>
        <source>Desktop Agent does not know this link, and nothing was opened.</source>
        <translation>Desktop Agent kennt diesen Link nicht; es wurde nichts geöffnet.</translation>
    </message>
    <message>
        <source>Desktop Agent does not open “{address}”.</source>
        <translation>Desktop Agent öffnet „{address}“ nicht.</translation>
    </message>
    <message>
        <source>Desktop Agent ended unexpectedly the last time.</source>
        <translation>Desktop Agent wurde beim letzten Mal unerwartet beendet.</translation>
    </message>
    <message>
        <source>Desktop Agent is already open ({who}); its window comes to the front.</source>
        <translation>Desktop Agent ist schon geöffnet ({who}); sein Fenster kommt nach vorn.</translation>
    </message>
    <message>
        <source>Desktop Agent is already open on this data folder ({who}), and does not answer. End that process, or name another folder with --data-dir.</source>
        <translation>Desktop Agent ist mit diesem Datenordner schon geöffnet ({who}) und antwortet nicht. Beenden Sie diesen Prozess, oder nennen Sie mit --data-dir einen anderen Ordner.</translation>
    </message>
    <message>
        <source>Desktop Agent {version} of {date} is available.</source>
        <translation>Desktop Agent {version} vom {date} ist verfügbar.</translation>
    </message>
    <message>
        <source>Exported to “{path}”.</source>
        <translation>Nach „{path}“ exportiert.</translation>
    </message>
    <message>
        <source>Files that the other version changed stay as they are.</source>
        <translation>Dateien, die die andere Version geändert hat, bleiben, wie sie sind.</translation>
    </message>
    <message>
        <source>Files that the other version changed stay as they are. What these tools did is not undone either: {tools}.</source>
        <translation>Dateien, die die andere Version geändert hat, bleiben, wie sie sind. Auch was diese Werkzeuge getan haben, wird nicht rückgängig gemacht: {tools}.</translation>
    </message>
    <message>
        <source>Folders with backups that are not there now, and may still have what was deleted for good: {folders}.</source>
        <translation>Ordner mit Sicherungen, die jetzt nicht da sind und noch enthalten können, was endgültig gelöscht wurde: {folders}.</translation>
    </message>
    <message>
        <source>Free some space, or save it on another disk.</source>
        <translation>Schaffen Sie Platz, oder speichern Sie auf einem anderen Datenträger.</translation>
    </message>
    <message>
        <source>Get a model with that program first, then try again.</source>
        <translation>Laden Sie zuerst mit jenem Programm ein Modell herunter, und versuchen Sie es dann erneut.</translation>
    </message>
    <message>
        <source>Here already: {present}.</source>
        <translation>Schon hier: {present}.</translation>
    </message>
    <message>
        <source>Imported conversations: {added}.</source>
        <translation>Importierte Unterhaltungen: {added}.</translation>
    </message>
    <message>
        <source>It answers and has one model.</source>
        <translation>Er antwortet und hat ein Modell.</translation>
    </message>
    <message>
        <source>It answers and has {count} models.</source>
        <translation>Er antwortet. Modelle: {count}.</translation>
    </message>
    <message>
        <source>It answers at {address}. That is its address from now on.</source>
        <translation>Er antwortet unter {address}. Das ist ab jetzt seine Adresse.</translation>
    </message>
    <message>
        <source>It may say something other than it seems to.</source>
        <translation>Er sagt vielleicht etwas anderes, als es scheint.</translation>
    </message>
    <message>
        <source>It would not run: {why}</source>
        <translation>Er würde nicht ausgeführt: {why}</translation>
    </message>
    <message>
        <source>It would run without asking: a rule allows it.</source>
        <translation>Er würde ohne Nachfrage ausgeführt: Eine Regel erlaubt es.</translation>
    </message>
    <message>
        <source>It would run without asking: it only reads.</source>
        <translation>Er würde ohne Nachfrage ausgeführt: Er liest nur.</translation>
    </message>
    <message>
        <source>It would run without asking: the mode allows it.</source>
        <translation>Er würde ohne Nachfrage ausgeführt: Der Modus erlaubt es.</translation>
    </message>
    <message>
        <source>Its name may hold bytes that are not text. Rename it, or choose another folder.</source>
        <translation>Sein Name enthält vielleicht Bytes, die kein Text sind. Benennen Sie ihn um, oder wählen Sie einen anderen Ordner.</translation>
    </message>
    <message>
        <source>Left out: {skipped}.</source>
        <translation>Weggelassen: {skipped}.</translation>
    </message>
    <message>
        <source>Less was restored than there was. Conversations: {conversations} of {expected}.</source>
        <translation>Es wurde weniger wiederhergestellt, als da war. Unterhaltungen: {conversations} von {expected}.</translation>
    </message>
    <message>
        <source>Look in your account there which models the key may use.</source>
        <translation>Sehen Sie in Ihrem Konto dort nach, welche Modelle der Schlüssel verwenden darf.</translation>
    </message>
    <message>
        <source>Moved conversations: {count}.</source>
        <translation>Verschobene Unterhaltungen: {count}.</translation>
    </message>
    <message>
        <source>Moved the folder “{name}”.</source>
        <translation>Der Ordner „{name}“ wurde verschoben.</translation>
    </message>
    <message>
        <source>Moved “{title}”.</source>
        <translation>„{title}“ ist verschoben.</translation>
    </message>
    <message>
        <source>New versions come with your system&apos;s software updates.</source>
        <translation>Neue Versionen kommen mit den Softwareaktualisierungen Ihres Systems.</translation>
    </message>
    <message>
        <source>No conversation was shown yet.</source>
        <translation>Es wurde noch keine Unterhaltung gezeigt.</translation>
    </message>
    <message>
        <source>No model is asked any more. Raise the budget in Settings, or ask anyway.</source>
        <translation>Es wird kein Modell mehr gefragt. Erhöhen Sie das Budget in den Einstellungen, oder fragen Sie trotzdem.</translation>
    </message>
    <message>
        <source>No picture of the screen could be taken.</source>
        <translation>Vom Bildschirm ließ sich kein Bild aufnehmen.</translation>
    </message>
    <message>
        <source>No screenshot was taken.</source>
        <translation>Es wurde kein Bildschirmfoto aufgenommen.</translation>
    </message>
    <message>
        <source>Not all of it was redone.</source>
        <translation>Nicht alles wurde wiederhergestellt.</translation>
    </message>
    <message>
        <source>Not all of it was undone.</source>
        <translation>Nicht alles wurde rückgängig gemacht.</translation>
    </message>
    <message>
        <source>Not available on this system yet. Use the tray&apos;s menu or the command palette to open the window.</source>
        <translation>Auf diesem System noch nicht verfügbar. Öffnen Sie das Fenster über das Menü im Infobereich oder die Befehlspalette.</translation>
    </message>
    <message>
        <source>Not possible in this package: it may not change how your desktop starts. Your desktop can.</source>
        <translation>In diesem Paket nicht möglich: Es darf nicht ändern, was Ihr Desktop startet. Der Desktop selbst kann es.</translation>
    </message>
    <message>
        <source>Nothing was left to redo: the files are already as they were before it was undone.</source>
        <translation>Es blieb nichts wiederherzustellen: Die Dateien sind schon so, wie sie vor dem Rückgängigmachen waren.</translation>
    </message>
    <message>
        <source>Nothing was left to undo: the files are already as they were before.</source>
        <translation>Es blieb nichts rückgängig zu machen: Die Dateien sind schon so wie vorher.</translation>
    </message>
    <message>
        <source>Nothing was redone.</source>
        <translation>Nichts wurde wiederhergestellt.</translation>
    </message>
    <message>
        <source>Nothing was undone.</source>
        <translation>Nichts wurde rückgängig gemacht.</translation>
    </message>
    <message>
        <source>Only the first {count} of these files and links are opened.</source>
        <translation>Nur die ersten {count} dieser Dateien und Links werden geöffnet.</translation>
    </message>
    <message>
        <source>Open its list again.</source>
        <translation>Öffnen Sie seine Liste erneut.</translation>
    </message>
    <message>
        <source>Pictures that could not be read: {count}. Their places are kept.</source>
        <translation>Bilder, die sich nicht lesen ließen: {count}. Ihre Plätze bleiben erhalten.</translation>
    </message>
    <message>
        <source>Pinned conversations: {count}.</source>
        <translation>Angeheftete Unterhaltungen: {count}.</translation>
    </message>
    <message>
        <source>Pinned “{title}”.</source>
        <translation>„{title}“ ist angeheftet.</translation>
    </message>
    <message>
        <source>Press the button again for another try.</source>
        <translation>Drücken Sie die Schaltfläche noch einmal für einen neuen Versuch.</translation>
    </message>
    <message>
        <source>Redone: {files}.</source>
        <translation>Wiederhergestellt: {files}.</translation>
    </message>
    <message>
        <source>Restored, as much as there was: conversations: {conversations}, messages: {messages}.</source>
        <translation>Wiederhergestellt, soweit vorhanden. Unterhaltungen: {conversations}, Nachrichten: {messages}.</translation>
    </message>
    <message>
        <source>Restoring…</source>
        <translation>Wird wiederhergestellt…</translation>
    </message>
    <message>
        <source>Save it as a text in UTF-8, or choose a picture.</source>
        <translation>Speichern Sie sie als Text in UTF-8, oder wählen Sie ein Bild.</translation>
    </message>
    <message>
        <source>Scheduled prompts have stopped ({kind}).</source>
        <translation>Geplante Prompts laufen nicht mehr ({kind}).</translation>
    </message>
    <message>
        <source>Something else is being done with backups. This begins by itself when it is done.</source>
        <translation>Mit den Sicherungen geschieht gerade etwas anderes. Danach beginnt das von selbst.</translation>
    </message>
    <message>
        <source>Start Desktop Agent again in a desktop session.</source>
        <translation>Starten Sie Desktop Agent in einer Desktop-Sitzung neu.</translation>
    </message>
    <message>
        <source>Stopped. What was complete by then is kept.</source>
        <translation>Angehalten. Was bis dahin fertig war, bleibt erhalten.</translation>
    </message>
    <message>
        <source>Tagged conversations: {count}.</source>
        <translation>Unterhaltungen mit Schlagwörtern versehen: {count}.</translation>
    </message>
    <message>
        <source>Take one with the keys of your desktop, and attach the clipboard.</source>
        <translation>Nehmen Sie eines mit den Tasten Ihres Desktops auf, und hängen Sie die Zwischenablage an.</translation>
    </message>
    <message>
        <source>The X server does not offer keys for the whole desktop.</source>
        <translation>Der X-Server bietet keine Tasten für den ganzen Desktop.</translation>
    </message>
    <message>
        <source>The automatic backup was not written: {why}</source>
        <translation>Die automatische Sicherung wurde nicht geschrieben: {why}</translation>
    </message>
    <message>
        <source>The backup is in “{folder}”.</source>
        <translation>Die Sicherung liegt in „{folder}“.</translation>
    </message>
    <message>
        <source>The check failed: {why}</source>
        <translation>Die Prüfung ist fehlgeschlagen: {why}</translation>
    </message>
    <message>
        <source>The desktop&apos;s portal has ended, so the keys for a quick question no longer work.</source>
        <translation>Das Portal des Desktops ist beendet, daher wirken die Tasten für eine schnelle Frage nicht mehr.</translation>
    </message>
    <message>
        <source>The folder of “{path}” is gone.</source>
        <translation>Der Ordner von „{path}“ ist weg.</translation>
    </message>
    <message>
        <source>The key is removed.</source>
        <translation>Der Schlüssel wurde entfernt.</translation>
    </message>
    <message>
        <source>The keyboard has no {keys}.</source>
        <translation>Auf der Tastatur gibt es {keys} nicht.</translation>
    </message>
    <message>
        <source>The link has characters in it that cannot be seen, and nothing was opened.</source>
        <translation>Der Link enthält Zeichen, die man nicht sieht; es wurde nichts geöffnet.</translation>
    </message>
    <message>
        <source>The link is too long, and nothing was opened.</source>
        <translation>Der Link ist zu lang; es wurde nichts geöffnet.</translation>
    </message>
    <message>
        <source>The list of licences is damaged. Install the program again.</source>
        <translation>Die Liste der Lizenzen ist beschädigt. Installieren Sie das Programm neu.</translation>
    </message>
    <message>
        <source>The message is in another version of this conversation. It can be shown when the answer has ended.</source>
        <translation>Die Nachricht ist in einer anderen Version dieser Unterhaltung. Sie lässt sich anzeigen, wenn die Antwort beendet ist.</translation>
    </message>
    <message>
        <source>The message is in another version of this conversation. It can be shown when the other program has ended.</source>
        <translation>Die Nachricht ist in einer anderen Version dieser Unterhaltung. Sie lässt sich anzeigen, wenn das andere Programm beendet ist.</translation>
    </message>
    <message>
        <source>The message is not in this conversation any more. Search again later.</source>
        <translation>Die Nachricht ist nicht mehr in dieser Unterhaltung. Suchen Sie später noch einmal.</translation>
    </message>
    <message>
        <source>The message that you are writing could not be saved either.</source>
        <translation>Auch die Nachricht, die Sie gerade schreiben, konnte nicht gespeichert werden.</translation>
    </message>
    <message>
        <source>The message that you are writing could not be saved.</source>
        <translation>Die Nachricht, die Sie gerade schreiben, konnte nicht gespeichert werden.</translation>
    </message>
    <message>
        <source>The path of the program or of the data folder has characters that cannot be used there.</source>
        <translation>Der Pfad des Programms oder des Datenordners enthält Zeichen, die dort nicht möglich sind.</translation>
    </message>
    <message>
        <source>The screenshot of your desktop cannot be read.</source>
        <translation>Das Bildschirmfoto Ihres Desktops ist nicht lesbar.</translation>
    </message>
    <message>
        <source>The servers were changed meanwhile. Look at the text again.</source>
        <translation>Die Server wurden inzwischen geändert. Sehen Sie sich den Text noch einmal an.</translation>
    </message>
    <message>
        <source>There are no screenshots on this system yet.</source>
        <translation>Auf diesem System gibt es noch keine Bildschirmfotos.</translation>
    </message>
    <message>
        <source>There is no answer yet.</source>
        <translation>Es gibt noch keine Antwort.</translation>
    </message>
    <message>
        <source>There is no file “{name}” that can be read.</source>
        <translation>Es gibt keine lesbare Datei „{name}“.</translation>
    </message>
    <message>
        <source>There is no message of yours yet, so nothing to undo.</source>
        <translation>Es gibt noch keine Nachricht von Ihnen, also nichts rückgängig zu machen.</translation>
    </message>
    <message>
        <source>There is no message yet.</source>
        <translation>Es gibt noch keine Nachricht.</translation>
    </message>
    <message>
        <source>There is no other version.</source>
        <translation>Es gibt keine andere Version.</translation>
    </message>
    <message>
        <source>There is no room left for “{path}”.</source>
        <translation>Für „{path}“ ist kein Platz mehr.</translation>
    </message>
    <message>
        <source>There is no text and no picture on the clipboard.</source>
        <translation>In der Zwischenablage ist weder Text noch ein Bild.</translation>
    </message>
    <message>
        <source>There is nothing in this conversation yet that could be exported.</source>
        <translation>In dieser Unterhaltung gibt es noch nichts zu exportieren.</translation>
    </message>
    <message>
        <source>There is nothing in this conversation yet. Send a message first, then rename it.</source>
        <translation>In dieser Unterhaltung ist noch nichts. Senden Sie zuerst eine Nachricht, und benennen Sie sie dann um.</translation>
    </message>
    <message>
        <source>They can be shown below your own and continued with any model. They are only read.</source>
        <translation>Sie lassen sich unter Ihren eigenen anzeigen und mit jedem Modell fortsetzen. Sie werden nur gelesen.</translation>
    </message>
    <message>
        <source>This build has no address to ask for new versions.</source>
        <translation>Dieses Programm kennt keine Adresse, bei der es nach neuen Versionen fragen kann.</translation>
    </message>
    <message>
        <source>This conversation is not stored, so nothing in it can be undone.</source>
        <translation>Diese Unterhaltung wird nicht gespeichert, daher lässt sich nichts darin rückgängig machen.</translation>
    </message>
    <message>
        <source>This conversation of another program is not known any more.</source>
        <translation>Diese Unterhaltung eines anderen Programms ist nicht mehr bekannt.</translation>
    </message>
    <message>
        <source>This conversation of another program is only read here.</source>
        <translation>Diese Unterhaltung eines anderen Programms wird hier nur gelesen.</translation>
    </message>
    <message>
        <source>This conversation of another program is only read here. Continue it here, then export it.</source>
        <translation>Diese Unterhaltung eines anderen Programms wird hier nur gelesen. Setzen Sie sie hier fort, und exportieren Sie sie dann.</translation>
    </message>
    <message>
        <source>This conversation of another program is only read here. Continue it here, then rename it.</source>
        <translation>Diese Unterhaltung eines anderen Programms wird hier nur gelesen. Setzen Sie sie hier fort, und benennen Sie sie dann um.</translation>
    </message>
    <message>
        <source>This is the newest version, as of {moment}.</source>
        <translation>Das ist die neueste Version, Stand {moment}.</translation>
    </message>
    <message>
        <source>This model has no reasoning level “{choice}”. Reasoning is back to Default.</source>
        <translation>Dieses Modell hat keine Denkstufe „{choice}“. Das Nachdenken steht wieder auf „Standard“.</translation>
    </message>
    <message>
        <source>This time is past. Choose a later one.</source>
        <translation>Dieser Zeitpunkt ist vorbei. Wählen Sie einen späteren.</translation>
    </message>
    <message>
        <source>Try again in a moment.</source>
        <translation>Versuchen Sie es gleich noch einmal.</translation>
    </message>
    <message>
        <source>Undone. {words}</source>
        <translation>Rückgängig gemacht. {words}</translation>
    </message>
    <message>
        <source>Undone: {files}.</source>
        <translation>Rückgängig gemacht: {files}.</translation>
    </message>
    <message>
        <source>Undone: {files}. {words}</source>
        <translation>Rückgängig gemacht: {files}. {words}</translation>
    </message>
    <message>
        <source>Unpinned conversations: {count}.</source>
        <translation>Nicht mehr angeheftete Unterhaltungen: {count}.</translation>
    </message>
    <message>
        <source>Unpinned “{title}”.</source>
        <translation>„{title}“ ist nicht mehr angeheftet.</translation>
    </message>
    <message>
        <source>Wait until it is done, then compact.</source>
        <translation>Warten Sie, bis es fertig ist, und verdichten Sie dann.</translation>
    </message>
    <message>
        <source>What these tools did for the other version is not undone: {tools}.</source>
        <translation>Was diese Werkzeuge für die andere Version getan haben, wird nicht rückgängig gemacht: {tools}.</translation>
    </message>
    <message>
        <source>Working on your conversations: {percent} % done.</source>
        <translation>Arbeit an Ihren Unterhaltungen: {percent} % erledigt.</translation>
    </message>
    <message>
        <source>Write the full path, or leave the field empty.</source>
        <translation>Schreiben Sie den vollständigen Pfad, oder lassen Sie das Feld leer.</translation>
    </message>
    <message>
        <source>Writing a backup…</source>
        <translation>Eine Sicherung wird geschrieben…</translation>
    </message>
    <message>
        <source>You are not signed in.</source>
        <translation>Sie sind nicht angemeldet.</translation>
    </message>
    <message>
        <source>You would be asked.</source>
        <translation>Sie würden gefragt.</translation>
    </message>
    <message>
        <source>You would be asked: {why}</source>
        <translation>Sie würden gefragt: {why}</translation>
    </message>
    <message>
        <source>Your conversations are kept. You can read a report of the crash; it is sent nowhere.</source>
        <translation>Ihre Unterhaltungen sind erhalten. Sie können einen Bericht über den Absturz lesen; er wird nirgendwohin gesendet.</translation>
    </message>
    <message>
        <source>Your desktop gave no key for the quick question.</source>
        <translation>Ihr Desktop hat für die schnelle Frage keine Taste vergeben.</translation>
    </message>
    <message>
        <source>Your desktop has no portal for global shortcuts, so no keys can be set here.</source>
        <translation>Ihr Desktop hat kein Portal für globale Tastenkürzel, daher lässt sich hier keine Taste festlegen.</translation>
    </message>
    <message>
        <source>Your desktop has no portal for screenshots.</source>
        <translation>Ihr Desktop hat kein Portal für Bildschirmfotos.</translation>
    </message>
    <message>
        <source>Your desktop refused the screenshot.</source>
        <translation>Ihr Desktop hat das Bildschirmfoto abgelehnt.</translation>
    </message>
    <message>
        <source>Your earlier draft is not loaded yet.</source>
        <translation>Ihr früherer Entwurf ist noch nicht geladen.</translation>
    </message>
    <message>
        <source>Your prompts can be edited as soon as messages can be sent here again.</source>
        <translation>Ihre Prompts können bearbeitet werden, sobald hier wieder Nachrichten gesendet werden können.</translation>
    </message>
    <message>
        <source>another process</source>
        <translation>ein anderer Prozess</translation>
    </message>
    <message>
        <source>every tool</source>
        <translation>jedes Werkzeug</translation>
    </message>
    <message>
        <source>process {pid} on “{host}” since {since}</source>
        <translation>Prozess {pid} auf „{host}“ seit {since}</translation>
    </message>
    <message>
        <source>process {pid} since {since}</source>
        <translation>Prozess {pid} seit {since}</translation>
    </message>
    <message>
        <source>{conversations} {draft}</source>
        <translation>{conversations} {draft}</translation>
    </message>
    <message>
        <source>{keys} cannot be used everywhere.</source>
        <translation>{keys} lässt sich nicht überall verwenden.</translation>
    </message>
    <message>
        <source>{titles} and {more} more could not be saved: {why}</source>
        <translation>Nicht gespeichert: {titles} und {more} weitere. {why}</translation>
    </message>
    <message>
        <source>{titles} could not be saved: {why}</source>
        <translation>Nicht gespeichert: {titles}. {why}</translation>
    </message>
    <message>
        <source>{title} answered, but it has no models yet.</source>
        <translation>{title} hat geantwortet, hat aber noch keine Modelle.</translation>
    </message>
    <message>
        <source>{who} What it writes is shown here; you can send again when it has ended.</source>
        <translation>{who} Was dort geschrieben wird, erscheint hier; Sie können wieder senden, wenn es beendet ist.</translation>
    </message>
    <message>
        <source>“Start with the computer” was not changed: {why}</source>
        <translation>Ob Desktop Agent mit dem Computer startet, wurde nicht geändert: {why}</translation>
    </message>
    <message>
        <source>“{address}” could not be opened. Copy it, and open it yourself.</source>
        <translation>„{address}“ ließ sich nicht öffnen. Kopieren Sie sie, und öffnen Sie sie selbst.</translation>
    </message>
    <message>
        <source>“{address}” is not a file on this computer.</source>
        <translation>„{address}“ ist keine Datei auf diesem Computer.</translation>
    </message>
    <message>
        <source>“{folder}” is not the full path of a folder for backups.</source>
        <translation>„{folder}“ ist kein vollständiger Pfad eines Ordners für Sicherungen.</translation>
    </message>
    <message>
        <source>“{keys}” is not a keyboard shortcut.</source>
        <translation>„{keys}“ ist kein Tastenkürzel.</translation>
    </message>
    <message>
        <source>“{name}”</source>
        <translation>„{name}“</translation>
    </message>
    <message>
        <source>“{name}” cannot be read: {why}. Choose another file.</source>
        <translation>„{name}“ lässt sich nicht lesen: {why}. Wählen Sie eine andere Datei.</translation>
    </message>
    <message>
        <source>“{name}” is a device or a channel, not a file.</source>
        <translation>„{name}“ ist ein Gerät oder ein Kanal, keine Datei.</translation>
    </message>
    <message>
        <source>“{name}” is a folder.</source>
        <translation>„{name}“ ist ein Ordner.</translation>
    </message>
    <message>
        <source>“{name}” is neither a picture nor a text in UTF-8.</source>
        <translation>„{name}“ ist weder ein Bild noch ein Text in UTF-8.</translation>
    </message>
    <message>
        <source>“{name}” was saved in {folder}.</source>
        <translation>„{name}“ wurde in {folder} gespeichert.</translation>
    </message>
    <message>
        <source>“{path}” cannot be saved: {reason}.</source>
        <translation>„{path}“ lässt sich nicht speichern: {reason}.</translation>
    </message>
    <message>
        <source>“{path}” cannot be written.</source>
        <translation>„{path}“ lässt sich nicht schreiben.</translation>
    </message>
    <message>
        <source>“{path}” could not be written to its end.</source>
        <translation>„{path}“ ließ sich nicht bis zum Ende schreiben.</translation>
    </message>
    <message>
        <source>“{server}” is connected. Its models are in the list below the message editor.</source>
        <translation>„{server}“ ist verbunden. Seine Modelle stehen in der Liste unter dem Eingabefeld.</translation>
    </message>
    <message>
        <source>“{title}” has {length} characters; a message takes {most} of a resource.</source>
        <translation>„{title}“ hat {length} Zeichen; eine Nachricht nimmt höchstens {most} Zeichen einer Ressource auf.</translation>
    </message>
    <message>
        <source>“{title}” is empty.</source>
        <translation>„{title}“ ist leer.</translation>
    </message>
    <message>
        <source>“{title}” is neither text nor a picture that a message can hold.</source>
        <translation>„{title}“ ist weder Text noch ein Bild, das eine Nachricht enthalten kann.</translation>
    </message>
    <message>
        <source>at its next command</source>
        <translation>beim nächsten Befehl</translation>
    </message>
    <message>
        <source>when it commits, merges, pulls or pushes</source>
        <translation>bei Commit, Merge, Pull oder Push</translation>
    </message>
    <message>
        <source>at the next commit or push</source>
        <translation>beim nächsten Commit oder Push</translation>
    </message>
    <message>
        <source>pre-commit or prek</source>
        <translation>pre-commit oder prek</translation>
    </message>
    <message>
        <source>when another repository takes its hooks from this one</source>
        <translation>wenn ein anderes Repository seine Hooks von hier bezieht</translation>
    </message>
    <message>
        <source>when it is installed next</source>
        <translation>bei der nächsten Installation</translation>
    </message>
    <message>
        <source>at the next commit</source>
        <translation>beim nächsten Commit</translation>
    </message>
    <message>
        <source>at the next commit, push or check</source>
        <translation>beim nächsten Commit, Push oder Prüflauf</translation>
    </message>
    <message>
        <source>when the folder is opened</source>
        <translation>sobald der Ordner geöffnet wird</translation>
    </message>
    <message>
        <source>when debugging starts</source>
        <translation>sobald das Debuggen beginnt</translation>
    </message>
    <message>
        <source>when a C or C++ file of the folder is opened</source>
        <translation>sobald eine C- oder C++-Datei des Ordners geöffnet wird</translation>
    </message>
    <message>
        <source>when the project is started</source>
        <translation>sobald das Projekt gestartet wird</translation>
    </message>
    <message>
        <source>Visual Studio or dotnet</source>
        <translation>Visual Studio oder dotnet</translation>
    </message>
    <message>
        <source>when a file of the folder is opened in an editor</source>
        <translation>sobald eine Datei des Ordners in einem Editor geöffnet wird</translation>
    </message>
    <message>
        <source>when a file of the folder is opened or renamed in an editor</source>
        <translation>sobald eine Datei des Ordners in einem Editor geöffnet oder umbenannt wird</translation>
    </message>
    <message>
        <source>when the project is opened or built</source>
        <translation>sobald das Projekt geöffnet oder gebaut wird</translation>
    </message>
    <message>
        <source>when a task or debugging is started</source>
        <translation>sobald eine Aufgabe oder das Debuggen gestartet wird</translation>
    </message>
    <message>
        <source>when the project is opened in one</source>
        <translation>sobald das Projekt dort geöffnet wird</translation>
    </message>
    <message>
        <source>the workspace in the cloud</source>
        <translation>der Arbeitsumgebung in der Cloud</translation>
    </message>
    <message>
        <source>when the project is opened</source>
        <translation>sobald das Projekt geöffnet wird</translation>
    </message>
    <message>
        <source>Replit, Firebase Studio, StackBlitz or CodeSandbox</source>
        <translation>Replit, Firebase Studio, StackBlitz oder CodeSandbox</translation>
    </message>
    <message>
        <source>when it opens the folder in a container</source>
        <translation>beim Öffnen des Ordners in einem Container</translation>
    </message>
    <message>
        <source>the editor</source>
        <translation>dem Editor</translation>
    </message>
    <message>
        <source>JetBrains IDEs</source>
        <translation>den IDEs von JetBrains</translation>
    </message>
    <message>
        <source>when a file of the folder is opened</source>
        <translation>sobald eine Datei des Ordners geöffnet wird</translation>
    </message>
    <message>
        <source>when it is started in the folder</source>
        <translation>beim Start in diesem Ordner</translation>
    </message>
    <message>
        <source>when the project is built</source>
        <translation>sobald das Projekt gebaut wird</translation>
    </message>
    <message>
        <source>when the folder is opened, built or debugged</source>
        <translation>sobald der Ordner geöffnet, gebaut oder debuggt wird</translation>
    </message>
    <message>
        <source>when a file of the folder is opened or saved in an editor</source>
        <translation>sobald eine Datei des Ordners in einem Editor geöffnet oder gespeichert wird</translation>
    </message>
    <message>
        <source>the Lua language server</source>
        <translation>dem Sprachserver für Lua</translation>
    </message>
    <message>
        <source>Metals or IntelliJ IDEA</source>
        <translation>Metals oder IntelliJ IDEA</translation>
    </message>
    <message>
        <source>the Haskell language server</source>
        <translation>dem Sprachserver für Haskell</translation>
    </message>
    <message>
        <source>when a document is built</source>
        <translation>sobald ein Dokument gebaut wird</translation>
    </message>
    <message>
        <source>when it works in the folder</source>
        <translation>bei der Arbeit in diesem Ordner</translation>
    </message>
    <message>
        <source>when the plugin is used</source>
        <translation>sobald das Plug-in benutzt wird</translation>
    </message>
    <message>
        <source>when a shell enters the folder</source>
        <translation>sobald eine Shell in den Ordner wechselt</translation>
    </message>
    <message>
        <source>mise or asdf</source>
        <translation>mise oder asdf</translation>
    </message>
    <message>
        <source>at every start</source>
        <translation>bei jedem Start</translation>
    </message>
    <message>
        <source>the Python debugger</source>
        <translation>dem Debugger von Python</translation>
    </message>
    <message>
        <source>when Yarn starts it, or an editor opens the project</source>
        <translation>beim Start durch Yarn, oder sobald ein Editor das Projekt öffnet</translation>
    </message>
    <message>
        <source>Node.js and the editor</source>
        <translation>Node.js und dem Editor</translation>
    </message>
    <message>
        <source>Ruby&apos;s console</source>
        <translation>der Konsole von Ruby</translation>
    </message>
    <message>
        <source>at the next test of Perl</source>
        <translation>beim nächsten Test von Perl</translation>
    </message>
    <message>
        <source>when somebody pushes it</source>
        <translation>sobald jemand die Datei pusht</translation>
    </message>
    <message>
        <source>when a workflow uses it</source>
        <translation>sobald ein Workflow die Datei benutzt</translation>
    </message>
    <message>
        <source>Read the Docs</source>
        <translation>Read the Docs</translation>
    </message>
    <message>
        <source>when somebody opens it or the disk</source>
        <translation>sobald jemand die Datei oder den Datenträger öffnet</translation>
    </message>
    <message>
        <source>the desktop</source>
        <translation>der Desktop-Umgebung</translation>
    </message>
    <message>
        <source>when a page of the folder is asked for</source>
        <translation>sobald eine Seite des Ordners abgerufen wird</translation>
    </message>
    <message>
        <source>a web server</source>
        <translation>einem Webserver</translation>
    </message>
    <message>
        <source>at the next build</source>
        <translation>beim nächsten Build</translation>
    </message>
    <message>
        <source>when it is started next</source>
        <translation>beim nächsten Start</translation>
    </message>
    <message>
        <source>Foreman or Heroku</source>
        <translation>Foreman oder Heroku</translation>
    </message>
    <message>
        <source>nodemon or Air</source>
        <translation>nodemon oder Air</translation>
    </message>
    <message>
        <source>Django, Rails or Laravel</source>
        <translation>Django, Rails oder Laravel</translation>
    </message>
    <message>
        <source>when documents are built</source>
        <translation>sobald Dokumente gebaut werden</translation>
    </message>
    <message>
        <source>Sphinx, MkDocs or mdBook</source>
        <translation>Sphinx, MkDocs oder mdBook</translation>
    </message>
    <message>
        <source>at the next build or deployment</source>
        <translation>beim nächsten Build oder Deployment</translation>
    </message>
    <message>
        <source>when its stages are run next</source>
        <translation>beim nächsten Lauf seiner Stufen</translation>
    </message>
    <message>
        <source>at the next install</source>
        <translation>bei der nächsten Installation</translation>
    </message>
    <message>
        <source>at the next install, build or test</source>
        <translation>bei der nächsten Installation oder beim nächsten Build oder Test</translation>
    </message>
    <message>
        <source>at the next build or test</source>
        <translation>beim nächsten Build oder Test</translation>
    </message>
    <message>
        <source>Lerna, Turborepo or Nx</source>
        <translation>Lerna, Turborepo oder Nx</translation>
    </message>
    <message>
        <source>when its next task is run</source>
        <translation>bei seiner nächsten Aufgabe</translation>
    </message>
    <message>
        <source>Grunt or Gulp</source>
        <translation>Grunt oder Gulp</translation>
    </message>
    <message>
        <source>at the next build or test, or when it is started</source>
        <translation>beim nächsten Build, Test oder Start</translation>
    </message>
    <message>
        <source>at the next build, or when it is started</source>
        <translation>beim nächsten Build oder Start</translation>
    </message>
    <message>
        <source>at the next test</source>
        <translation>beim nächsten Test</translation>
    </message>
    <message>
        <source>at the next check</source>
        <translation>beim nächsten Prüflauf</translation>
    </message>
    <message>
        <source>at the next release</source>
        <translation>bei der nächsten Veröffentlichung</translation>
    </message>
    <message>
        <source>at the next build, or when a file of the folder is opened</source>
        <translation>beim nächsten Build, oder sobald eine Datei des Ordners geöffnet wird</translation>
    </message>
    <message>
        <source>GraphQL Code Generator or the GraphQL language server</source>
        <translation>GraphQL Code Generator oder dem Sprachserver für GraphQL</translation>
    </message>
    <message>
        <source>at the next check, or when a file is saved in an editor</source>
        <translation>beim nächsten Prüflauf, oder sobald eine Datei in einem Editor gespeichert wird</translation>
    </message>
    <message>
        <source>at the next build, test or check</source>
        <translation>beim nächsten Build, Test oder Prüflauf</translation>
    </message>
    <message>
        <source>the builder or checker that it sets up</source>
        <translation>dem Programm, das damit eingerichtet wird und baut oder prüft</translation>
    </message>
    <message>
        <source>at the next install, test or check</source>
        <translation>bei der nächsten Installation oder beim nächsten Test oder Prüflauf</translation>
    </message>
    <message>
        <source>pip or pytest</source>
        <translation>pip oder pytest</translation>
    </message>
    <message>
        <source>tox or Nox</source>
        <translation>tox oder Nox</translation>
    </message>
    <message>
        <source>at the next install or run</source>
        <translation>bei der nächsten Installation oder beim nächsten Lauf</translation>
    </message>
    <message>
        <source>at the next install or build</source>
        <translation>bei der nächsten Installation oder beim nächsten Build</translation>
    </message>
    <message>
        <source>when the build is set up</source>
        <translation>beim Einrichten des Builds</translation>
    </message>
    <message>
        <source>a shell</source>
        <translation>einer Shell</translation>
    </message>
    <message>
        <source>SCons or Waf</source>
        <translation>SCons oder Waf</translation>
    </message>
    <message>
        <source>Ninja, xmake, Premake or Zig</source>
        <translation>Ninja, xmake, Premake oder Zig</translation>
    </message>
    <message>
        <source>at the next build, or when the project is opened</source>
        <translation>beim nächsten Build, oder sobald das Projekt geöffnet wird</translation>
    </message>
    <message>
        <source>at the next build, or when a file of the project is opened</source>
        <translation>beim nächsten Build, oder sobald eine Datei des Projekts geöffnet wird</translation>
    </message>
    <message>
        <source>Leiningen or Clojure</source>
        <translation>Leiningen oder Clojure</translation>
    </message>
    <message>
        <source>MSBuild or NuGet</source>
        <translation>MSBuild oder NuGet</translation>
    </message>
    <message>
        <source>at the next install, test or build</source>
        <translation>bei der nächsten Installation oder beim nächsten Test oder Build</translation>
    </message>
    <message>
        <source>Rake or Bundler</source>
        <translation>Rake oder Bundler</translation>
    </message>
    <message>
        <source>at the next test or check</source>
        <translation>beim nächsten Test oder Prüflauf</translation>
    </message>
    <message>
        <source>RSpec or RuboCop</source>
        <translation>RSpec oder RuboCop</translation>
    </message>
    <message>
        <source>CocoaPods or fastlane</source>
        <translation>CocoaPods oder fastlane</translation>
    </message>
    <message>
        <source>at the next build or start of a container</source>
        <translation>beim nächsten Build oder Start eines Containers</translation>
    </message>
    <message>
        <source>Mix or Rebar</source>
        <translation>Mix oder Rebar</translation>
    </message>
    <message>
        <source>Swift or Xcode</source>
        <translation>Swift oder Xcode</translation>
    </message>
    <message>
        <source>Cabal or Stack</source>
        <translation>Cabal oder Stack</translation>
    </message>
    <message>
        <source>at the next install or test</source>
        <translation>bei der nächsten Installation oder beim nächsten Test</translation>
    </message>
    <message>
        <source>Perl&apos;s installer</source>
        <translation>dem Installationsprogramm von Perl</translation>
    </message>
    <message>
        <source>when they are started next</source>
        <translation>bei ihrem nächsten Start</translation>
    </message>
    <message>
        <source>the programs of the project</source>
        <translation>den Programmen des Projekts</translation>
    </message>
    <message>
        <source>when a terminal is opened or you log in</source>
        <translation>sobald ein Terminal geöffnet wird oder Sie sich anmelden</translation>
    </message>
    <message>
        <source>your shell</source>
        <translation>Ihrer Shell</translation>
    </message>
    <message>
        <source>when you log in or start a program</source>
        <translation>sobald Sie sich anmelden oder ein Programm starten</translation>
    </message>
    <message>
        <source>your desktop</source>
        <translation>Ihrer Desktop-Umgebung</translation>
    </message>
    <message>
        <source>when you type a command of that name</source>
        <translation>sobald Sie einen Befehl dieses Namens eingeben</translation>
    </message>
    <message>
        <source>when it is started</source>
        <translation>beim Start</translation>
    </message>
    <message>
        <source>when a terminal is opened</source>
        <translation>sobald ein Terminal geöffnet wird</translation>
    </message>
</context>
<context>
    <name>ServerDescription</name>
    <message>
        <source>The server&apos;s own words</source>
        <translation>Worte des Servers selbst</translation>
    </message>
    <message>
        <source>A tool of the server “{0}”. The server&apos;s description (not verified):</source>
        <translation>Ein Werkzeug des Servers „{0}“. Die Beschreibung des Servers (nicht geprüft):</translation>
    </message>
</context>
<context>
    <name>ServerEditor</name>
    <message>
        <source>A program on this computer</source>
        <translation>Ein Programm auf diesem Computer</translation>
    </message>
    <message>
        <source>An address</source>
        <translation>Eine Adresse</translation>
    </message>
    <message>
        <source>Give the server a title.</source>
        <translation>Geben Sie dem Server einen Titel.</translation>
    </message>
    <message>
        <source>Title</source>
        <translation>Titel</translation>
    </message>
    <message>
        <source>You see this title when you are asked about a tool of the server. Rules use it too.</source>
        <translation>Sie sehen diesen Titel, wenn Sie zu einem Werkzeug des Servers gefragt werden. Auch Regeln verwenden ihn.</translation>
    </message>
    <message>
        <source>Its tools</source>
        <translation>Seine Werkzeuge</translation>
    </message>
    <message>
        <source>Time limit</source>
        <translation>Zeitlimit</translation>
    </message>
    <message>
        <source> s</source>
        <translation> s</translation>
    </message>
    <message>
        <source>Trust what it says about its tools</source>
        <translation>Seinen Angaben über seine Werkzeuge vertrauen</translation>
    </message>
    <message>
        <source>Tools that the server calls harmless then run without asking you. Leave this off unless you trust the maker of the server: nobody checks what the server says.</source>
        <translation>Ein Werkzeug, das er harmlos nennt, läuft dann, ohne dass Sie gefragt werden. Lassen Sie das aus, wenn Sie dem Hersteller des Servers nicht vertrauen: Was er über seine Werkzeuge sagt, prüft niemand.</translation>
    </message>
</context>
<context>
    <name>ServerRequestDialog</name>
    <message>
        <source>Waiting questions</source>
        <translation>Wartende Fragen</translation>
    </message>
    <message>
        <source>{0} questions are waiting</source>
        <translation>{0} Fragen warten</translation>
    </message>
    <message>
        <source>Stop the agent</source>
        <translation>Den Agenten anhalten</translation>
    </message>
    <message>
        <source>An MCP server asks</source>
        <translation>Ein MCP-Server fragt</translation>
    </message>
</context>
<context>
    <name>ServerRequestPage</name>
    <message>
        <source>{0} · {1}</source>
        <translation>{0} · {1}</translation>
    </message>
    <message>
        <source>In the conversation “{0}”.</source>
        <translation>In der Unterhaltung „{0}“.</translation>
    </message>
    <message>
        <source>“{0}” wants a model to answer</source>
        <translation>„{0}“ möchte, dass ein Modell antwortet</translation>
    </message>
    <message>
        <source>A question to a model</source>
        <translation>Eine Frage an ein Modell</translation>
    </message>
    <message>
        <source>The server wrote the text below. It would be sent to your model in your name.</source>
        <translation>Den Text unten hat der Server geschrieben. Er würde in Ihrem Namen an Ihr Modell gesendet.</translation>
    </message>
    <message>
        <source>Allow once</source>
        <translation>Einmal erlauben</translation>
    </message>
    <message>
        <source>Deny</source>
        <translation>Ablehnen</translation>
    </message>
    <message>
        <source>Send this answer to “{0}”?</source>
        <translation>Diese Antwort an „{0}“ senden?</translation>
    </message>
    <message>
        <source>A model&apos;s answer</source>
        <translation>Antwort eines Modells</translation>
    </message>
    <message>
        <source>Check that the answer contains nothing that this server should not have.</source>
        <translation>Prüfen Sie, dass die Antwort nichts enthält, was dieser Server nicht haben sollte.</translation>
    </message>
    <message>
        <source>Send</source>
        <translation>Senden</translation>
    </message>
    <message>
        <source>Do not send</source>
        <translation>Nicht senden</translation>
    </message>
    <message>
        <source>Decline</source>
        <translation>Ablehnen</translation>
    </message>
    <message>
        <source>“{0}” asks you to fill in a form</source>
        <translation>„{0}“ bittet Sie, ein Formular auszufüllen</translation>
    </message>
    <message>
        <source>A form</source>
        <translation>Ein Formular</translation>
    </message>
    <message>
        <source>What you send goes to this MCP server. Do not enter a password or a key.</source>
        <translation>Was Sie senden, geht an diesen MCP-Server. Geben Sie kein Passwort und keinen Schlüssel ein.</translation>
    </message>
    <message>
        <source>“{0}” asks you to open a page</source>
        <translation>„{0}“ bittet Sie, eine Seite zu öffnen</translation>
    </message>
    <message>
        <source>A page to open</source>
        <translation>Eine zu öffnende Seite</translation>
    </message>
    <message>
        <source>This MCP server wants you to do something in your browser.</source>
        <translation>Dieser MCP-Server möchte, dass Sie etwas in Ihrem Browser tun.</translation>
    </message>
    <message>
        <source>I am done</source>
        <translation>Ich bin fertig</translation>
    </message>
</context>
<context>
    <name>SessionControlsPresenter</name>
    <message>
        <source>The waiting message was removed.</source>
        <translation>Die wartende Nachricht wurde entfernt.</translation>
    </message>
</context>
<context>
    <name>SessionKeyLink</name>
    <message>
        <source>Keep it in memory</source>
        <translation>Im Arbeitsspeicher behalten</translation>
    </message>
    <message>
        <source>Keep it in memory until the program is closed</source>
        <translation>Bis zum Ende des Programms im Arbeitsspeicher behalten</translation>
    </message>
</context>
<context>
    <name>SettingsDialog</name>
    <message>
        <source>Restart now</source>
        <translation>Jetzt neu starten</translation>
    </message>
    <message>
        <source>Close Desktop Agent and start it again to see it in this language: {0}.</source>
        <translation>Beenden Sie Desktop Agent, und starten Sie es neu, um es in dieser Sprache zu sehen: {0}.</translation>
    </message>
    <message>
        <source>Settings</source>
        <translation>Einstellungen</translation>
    </message>
    <message>
        <source>Sections</source>
        <translation>Bereiche</translation>
    </message>
    <message>
        <source>Section</source>
        <translation>Bereich</translation>
    </message>
    <message>
        <source>About · version {0}</source>
        <translation>Über · Version {0}</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>Schließen</translation>
    </message>
</context>
<context>
    <name>SettingsPages</name>
    <message>
        <source>Connections</source>
        <translation>Verbindungen</translation>
    </message>
    <message>
        <source>General</source>
        <translation>Allgemein</translation>
    </message>
    <message>
        <source>Tools and safety</source>
        <translation>Werkzeuge und Sicherheit</translation>
    </message>
    <message>
        <source>Data</source>
        <translation>Daten</translation>
    </message>
    <message>
        <source>Providers and keys</source>
        <translation>Anbieter und Schlüssel</translation>
    </message>
    <message>
        <source>Model files</source>
        <translation>Modelldateien</translation>
    </message>
    <message>
        <source>Modes</source>
        <translation>Modi</translation>
    </message>
    <message>
        <source>Rules</source>
        <translation>Regeln</translation>
    </message>
    <message>
        <source>Decisions</source>
        <translation>Entscheidungen</translation>
    </message>
    <message>
        <source>MCP servers</source>
        <translation>MCP-Server</translation>
    </message>
    <message>
        <source>Specialists</source>
        <translation>Spezialisten</translation>
    </message>
    <message>
        <source>Keyboard shortcuts</source>
        <translation>Tastenkürzel</translation>
    </message>
    <message>
        <source>Other assistants</source>
        <translation>Andere Assistenten</translation>
    </message>
    <message>
        <source>API key, address, connect</source>
        <comment>words that find this page</comment>
        <translation>API-Schlüssel, Adresse, verbinden</translation>
    </message>
    <message>
        <source>permissions, always allow, deny, revoke</source>
        <comment>words that find this page</comment>
        <translation>Berechtigungen, Erlaubnis, immer erlauben, ablehnen, widerrufen</translation>
    </message>
    <message>
        <source>permissions, log, tool calls, export</source>
        <comment>words that find this page</comment>
        <translation>Berechtigungen, Protokoll, Werkzeugaufrufe, exportieren</translation>
    </message>
    <message>
        <source>permissions, copy a mode</source>
        <comment>words that find this page</comment>
        <translation>Berechtigungen, einen Modus kopieren</translation>
    </message>
    <message>
        <source>keys</source>
        <comment>words that find this page</comment>
        <translation>Tasten, Tastenkürzel</translation>
    </message>
    <message>
        <source>back up, restore, copies, data folder, check, compact</source>
        <comment>words that find this page</comment>
        <translation>sichern, Sicherung, wiederherstellen, Kopien, Datenordner, prüfen, verdichten</translation>
    </message>
    <message>
        <source>budgets, cost, price, limit, chart</source>
        <comment>words that find this page</comment>
        <translation>Budgets, Kosten, Preis, Grenze, Diagramm</translation>
    </message>
    <message>
        <source>English, German, Chinese</source>
        <comment>words that find this setting</comment>
        <translation>Englisch, Deutsch, Chinesisch</translation>
    </message>
</context>
<context>
    <name>SettingsSearch</name>
    <message>
        <source>Nothing found.</source>
        <translation>Nichts gefunden.</translation>
    </message>
    <message>
        <source>Found settings</source>
        <translation>Gefundene Einstellungen</translation>
    </message>
    <message>
        <source>Search settings</source>
        <translation>Einstellungen suchen</translation>
    </message>
</context>
<context>
    <name>ShortcutBar</name>
    <message>
        <source>You were typing when this opened. Press Tab or click here to use the keys.</source>
        <translation>Sie haben gerade getippt. Drücken Sie Tab, oder klicken Sie hier, um die Tasten zu benutzen.</translation>
    </message>
</context>
<context>
    <name>ShortcutSettings</name>
    <message>
        <source>Search shortcuts</source>
        <translation>Tastenkürzel suchen</translation>
    </message>
    <message>
        <source>Find by pressing keys</source>
        <translation>Durch Drücken von Tasten finden</translation>
    </message>
    <message>
        <source>Find by keys</source>
        <translation>Nach Tasten suchen</translation>
    </message>
    <message>
        <source>Keys</source>
        <translation>Tasten</translation>
    </message>
    <message>
        <source>Press keys</source>
        <translation>Tasten drücken</translation>
    </message>
    <message>
        <source>Reset</source>
        <translation>Zurücksetzen</translation>
    </message>
    <message>
        <source>No keys</source>
        <translation>Keine Tasten</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>Take over</source>
        <translation>Übernehmen</translation>
    </message>
    <message>
        <source>Take the keys over</source>
        <translation>Die Tasten übernehmen</translation>
    </message>
    <message>
        <source>Reset all shortcuts</source>
        <translation>Alle Tastenkürzel zurücksetzen</translation>
    </message>
    <message>
        <source>Reset all</source>
        <translation>Alle zurücksetzen</translation>
    </message>
    <message>
        <source>Reset all shortcuts now</source>
        <translation>Alle Tastenkürzel jetzt zurücksetzen</translation>
    </message>
    <message>
        <source>{0} is used for editing text.</source>
        <translation>{0} wird zum Bearbeiten von Text verwendet.</translation>
    </message>
    <message>
        <source>{0} is used in the message editor.</source>
        <translation>{0} wird im Eingabefeld verwendet.</translation>
    </message>
    <message>
        <source>{0} alone is needed for typing. Combine it with Ctrl or Alt.</source>
        <translation>{0} allein wird zum Tippen gebraucht. Verwenden Sie es mit Strg oder Alt.</translation>
    </message>
    <message>
        <source>{0} (changed)</source>
        <translation>{0} (geändert)</translation>
    </message>
    <message>
        <source>none</source>
        <translation>keine</translation>
    </message>
    <message>
        <source>No action found with these words or keys.</source>
        <translation>Keine Aktion mit diesen Wörtern oder Tasten gefunden.</translation>
    </message>
    <message>
        <source>Keys of “{0}”</source>
        <translation>Tasten von „{0}“</translation>
    </message>
    <message>
        <source>{0} is used by “{1}”.</source>
        <translation>{0} wird von „{1}“ verwendet.</translation>
    </message>
    <message>
        <source>{0} is used by “{1}”. Take it over? “{1}” then has no keys.</source>
        <translation>{0} wird von „{1}“ verwendet. Übernehmen? „{1}“ hat dann keine Tasten mehr.</translation>
    </message>
    <message>
        <source>All actions get their original keys.</source>
        <translation>Alle Aktionen bekommen ihre ursprünglichen Tasten.</translation>
    </message>
    <message>
        <source>Shortcuts</source>
        <translation>Tastenkürzel</translation>
    </message>
    <message>
        <source>Choose an action and press its new keys below the list. The keys of the approval dialog are fixed, so that nothing is allowed by mistake.</source>
        <translation>Wählen Sie eine Aktion, und drücken Sie unter der Liste ihre neuen Tasten. Die Tasten des Freigabedialogs stehen fest, damit nichts aus Versehen erlaubt wird.</translation>
    </message>
</context>
<context>
    <name>ShortcutsPage</name>
    <message>
        <source>Keyboard shortcuts</source>
        <translation>Tastenkürzel</translation>
    </message>
    <message>
        <source>Conversation 1 to {0} of the list</source>
        <translation>Unterhaltung 1 bis {0} der Liste</translation>
    </message>
</context>
<context>
    <name>ShortcutsPresenter</name>
    <message>
        <source>These keys are fixed.</source>
        <translation>Diese Tasten stehen fest.</translation>
    </message>
</context>
<context>
    <name>SidebarFooter</name>
    <message>
        <source>Scheduled prompts</source>
        <translation>Geplante Prompts</translation>
    </message>
    <message>
        <source>Trash</source>
        <translation>Papierkorb</translation>
    </message>
    <message>
        <source>Commands</source>
        <translation>Befehle</translation>
    </message>
    <message>
        <source>Help</source>
        <translation>Hilfe</translation>
    </message>
</context>
<context>
    <name>SignInBar</name>
    <message>
        <source>Sign in…</source>
        <translation>Anmelden…</translation>
    </message>
    <message>
        <source>Sign in to {0}</source>
        <translation>Bei {0} anmelden</translation>
    </message>
    <message>
        <source>Opens a page of the server in your browser</source>
        <translation>Öffnet eine Seite des Servers in Ihrem Browser</translation>
    </message>
    <message>
        <source>Sign out</source>
        <translation>Abmelden</translation>
    </message>
    <message>
        <source>Sign out of {0}</source>
        <translation>Bei {0} abmelden</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>Cancel signing in</source>
        <translation>Anmelden abbrechen</translation>
    </message>
    <message>
        <source>Copy address</source>
        <translation>Adresse kopieren</translation>
    </message>
    <message>
        <source>Your browser opened a page of the server. Sign in there; Desktop Agent then continues by itself.</source>
        <translation>Ihr Browser hat eine Seite des Servers geöffnet. Melden Sie sich dort an; danach macht Desktop Agent von selbst weiter.</translation>
    </message>
    <message>
        <source>The browser could not be opened. Copy the address, and open it in a browser yourself.</source>
        <translation>Der Browser ließ sich nicht öffnen. Kopieren Sie die Adresse, und öffnen Sie sie selbst in einem Browser.</translation>
    </message>
    <message>
        <source>Asking the server where to sign in. Your browser opens then…</source>
        <translation>Der Server wird gefragt, wo man sich anmeldet. Danach öffnet sich Ihr Browser…</translation>
    </message>
    <message>
        <source>Address copied</source>
        <translation>Adresse kopiert</translation>
    </message>
</context>
<context>
    <name>Size</name>
    <message>
        <source>${0}</source>
        <translation>{0} $</translation>
    </message>
    <message>
        <source>{0} bytes</source>
        <translation>{0} Byte</translation>
    </message>
</context>
<context>
    <name>SpecialistCard</name>
    <message>
        <source>Specialist {0}</source>
        <translation>Spezialist {0}</translation>
    </message>
    <message>
        <source>Edit</source>
        <translation>Bearbeiten</translation>
    </message>
    <message>
        <source>Edit {0}</source>
        <translation>{0} bearbeiten</translation>
    </message>
    <message>
        <source>Remove {0}</source>
        <translation>{0} entfernen</translation>
    </message>
    <message>
        <source>Remove</source>
        <translation>Entfernen</translation>
    </message>
    <message>
        <source>none</source>
        <translation>keine</translation>
    </message>
    <message>
        <source>Tools: {0}</source>
        <translation>Werkzeuge: {0}</translation>
    </message>
    <message>
        <source>Model: {0}</source>
        <translation>Modell: {0}</translation>
    </message>
    <message>
        <source>Budget: {0} %</source>
        <translation>Budget: {0} %</translation>
    </message>
    <message>
        <source>At most {0} tokens</source>
        <translation>Höchstens {0} Token</translation>
    </message>
    <message>
        <source>At most {0}</source>
        <translation>Höchstens {0}</translation>
    </message>
    <message>
        <source>At most {0} min</source>
        <translation>Höchstens {0} min</translation>
    </message>
</context>
<context>
    <name>SpecialistEditor</name>
    <message>
        <source>Specialist editor</source>
        <translation>Spezialisteneditor</translation>
    </message>
    <message>
        <source>A name has letters from a to z, digits, “_” and “-”, and begins with a letter. Change it.</source>
        <translation>Ein Name hat Buchstaben von a bis z, Ziffern, „_“ und „-“ und beginnt mit einem Buchstaben. Ändern Sie ihn.</translation>
    </message>
    <message>
        <source>Another specialist or tool has this name. Choose another one.</source>
        <translation>Ein anderer Spezialist oder ein anderes Werkzeug hat diesen Namen. Wählen Sie einen anderen.</translation>
    </message>
    <message>
        <source>Write the name of the model, or choose one from the list.</source>
        <translation>Schreiben Sie den Namen des Modells, oder wählen Sie eines aus der Liste.</translation>
    </message>
    <message>
        <source>Name</source>
        <translation>Name</translation>
    </message>
    <message>
        <source>The agent reads the description to know whom to call. Write one.</source>
        <translation>Der Agent liest die Beschreibung, um zu wissen, wen er aufruft. Schreiben Sie eine.</translation>
    </message>
    <message>
        <source>Description</source>
        <translation>Beschreibung</translation>
    </message>
    <message>
        <source>A specialist needs instructions. Write what it is and how it works.</source>
        <translation>Ein Spezialist braucht Anweisungen. Schreiben Sie, was er ist und wie er arbeitet.</translation>
    </message>
    <message>
        <source>Instructions</source>
        <translation>Anweisungen</translation>
    </message>
    <message>
        <source>The server of the conversation answers, so it must be one of its models.</source>
        <translation>Es antwortet der Server der Unterhaltung, es muss also eines seiner Modelle sein.</translation>
    </message>
    <message>
        <source>Model</source>
        <translation>Modell</translation>
    </message>
    <message>
        <source>Tools</source>
        <translation>Werkzeuge</translation>
    </message>
    <message>
        <source>No limit</source>
        <translation>Keine Grenze</translation>
    </message>
    <message>
        <source>Share of the budget</source>
        <translation>Anteil am Budget</translation>
    </message>
    <message>
        <source>Share of the tokens and the cost that its caller has left.</source>
        <translation>Anteil an den Token und den Kosten, die dem Aufrufenden bleiben.</translation>
    </message>
    <message>
        <source> tokens for each call</source>
        <translation> Token je Aufruf</translation>
    </message>
    <message>
        <source>Token limit</source>
        <translation>Token-Limit</translation>
    </message>
    <message>
        <source> for each call</source>
        <translation> je Aufruf</translation>
    </message>
    <message>
        <source>Cost limit</source>
        <translation>Kostenlimit</translation>
    </message>
    <message>
        <source> minutes for each call</source>
        <translation> Minuten je Aufruf</translation>
    </message>
    <message>
        <source>Working time; waiting for you does not count.</source>
        <translation>Arbeitszeit; Warten auf Sie zählt nicht.</translation>
    </message>
    <message>
        <source>Time limit</source>
        <translation>Zeitlimit</translation>
    </message>
    <message>
        <source>Turn limit</source>
        <translation>Rundenlimit</translation>
    </message>
    <message>
        <source> turns for each call</source>
        <translation> Runden je Aufruf</translation>
    </message>
</context>
<context>
    <name>SpecialistSettings</name>
    <message>
        <source>Add specialist…</source>
        <translation>Spezialist hinzufügen…</translation>
    </message>
    <message>
        <source>There is no specialist yet.</source>
        <translation>Es gibt noch keinen Spezialisten.</translation>
    </message>
    <message>
        <source>A specialist is an agent with its own instructions, which the agent can call like a tool. It may never do more than the agent that calls it. Changes apply from the next message on.</source>
        <translation>Ein Spezialist ist ein Agent mit eigenen Anweisungen, den der Agent wie ein Werkzeug aufrufen kann. Er darf nie mehr als der Agent, der ihn aufruft. Änderungen gelten ab der nächsten Nachricht.</translation>
    </message>
    <message>
        <source>The specialist “{0}” is removed. No conversation uses it from its next prompt on.</source>
        <translation>Der Spezialist „{0}“ ist entfernt. Ab dem nächsten Prompt verwendet ihn keine Unterhaltung mehr.</translation>
    </message>
</context>
<context>
    <name>SpellingSettings</name>
    <message>
        <source>For other languages put dictionaries of Hunspell (two files, .aff and .dic) into {0}.</source>
        <translation>Für andere Sprachen legen Sie Wörterbücher von Hunspell (zwei Dateien, .aff und .dic) in {0}.</translation>
    </message>
    <message>
        <source>Spelling cannot be checked on this system: the library for it is missing.</source>
        <translation>Auf diesem System kann die Rechtschreibung nicht geprüft werden: Die Bibliothek dafür fehlt.</translation>
    </message>
    <message>
        <source>No dictionary was found: spelling is not checked.</source>
        <translation>Es wurde kein Wörterbuch gefunden: Die Rechtschreibung wird nicht geprüft.</translation>
    </message>
    <message>
        <source>There is no dictionary for the language of your system.</source>
        <translation>Für die Sprache Ihres Systems gibt es kein Wörterbuch.</translation>
    </message>
</context>
<context>
    <name>StarterMessages</name>
    <message>
        <source>Suggestions</source>
        <translation>Vorschläge</translation>
    </message>
    <message>
        <source>Try one of these:</source>
        <translation>Zum Ausprobieren:</translation>
    </message>
    <message>
        <source>Do not store this conversation</source>
        <translation>Diese Unterhaltung nicht speichern</translation>
    </message>
</context>
<context>
    <name>StartupError</name>
    <message>
        <source>Choose another data folder…</source>
        <translation>Einen anderen Datenordner auswählen…</translation>
    </message>
    <message>
        <source>Try again</source>
        <translation>Erneut versuchen</translation>
    </message>
    <message>
        <source>Choose another data folder</source>
        <translation>Einen anderen Datenordner auswählen</translation>
    </message>
</context>
<context>
    <name>StdioFields</name>
    <message>
        <source>For example npx or uvx</source>
        <translation>Zum Beispiel npx oder uvx</translation>
    </message>
    <message>
        <source>For example -y</source>
        <translation>Zum Beispiel -y</translation>
    </message>
    <message>
        <source>Split it</source>
        <translation>Aufteilen</translation>
    </message>
    <message>
        <source>Program</source>
        <translation>Programm</translation>
    </message>
    <message>
        <source>One per line. No shell reads them: ~, * and $HOME stay as they are.</source>
        <translation>Eines je Zeile. Keine Shell verarbeitet sie: ~, * und $HOME bleiben, wie sie sind.</translation>
    </message>
    <message>
        <source>Arguments</source>
        <translation>Argumente</translation>
    </message>
    <message>
        <source>Variables</source>
        <translation>Variablen</translation>
    </message>
    <message>
        <source>Enter the program that is started, for example npx or uvx.</source>
        <translation>Geben Sie das Programm ein, das gestartet wird, zum Beispiel npx oder uvx.</translation>
    </message>
    <message>
        <source>A program and its arguments cannot have NUL characters. Remove them.</source>
        <translation>Ein Programm und seine Argumente dürfen keine NUL-Zeichen haben. Entfernen Sie sie.</translation>
    </message>
    <message>
        <source>This is a whole command line: {0}</source>
        <translation>Das ist eine ganze Befehlszeile: {0}</translation>
    </message>
    <message>
        <source>“{0}” seems to contain a secret. Arguments are kept in a file, and every program on this computer can read them: use a secret variable, if the server accepts one.</source>
        <translation>„{0}“ scheint ein Geheimnis zu enthalten. Argumente liegen in einer Datei, und jedes Programm auf diesem Computer kann sie lesen: Verwenden Sie eine geheime Variable, wenn der Server eine annimmt.</translation>
    </message>
    <message>
        <source>The secret variables were entered for the previous program and are not given to another one. Enter them again.</source>
        <translation>Die geheimen Variablen wurden für das vorige Programm eingegeben und gehen an kein anderes. Geben Sie sie neu ein.</translation>
    </message>
    <message>
        <source>Split into program and arguments</source>
        <translation>In Programm und Argumente aufteilen</translation>
    </message>
</context>
<context>
    <name>StorageSettings</name>
    <message>
        <source>Check now</source>
        <translation>Jetzt prüfen</translation>
    </message>
    <message>
        <source>Open folder</source>
        <translation>Ordner öffnen</translation>
    </message>
    <message>
        <source>Back up now</source>
        <translation>Jetzt sichern</translation>
    </message>
    <message>
        <source>Restore into a new folder…</source>
        <translation>In einen neuen Ordner wiederherstellen…</translation>
    </message>
    <message>
        <source>Delete backup…</source>
        <translation>Sicherung löschen…</translation>
    </message>
    <message>
        <source>Compact</source>
        <translation>Verdichten</translation>
    </message>
    <message>
        <source>Cancel compacting</source>
        <translation>Verdichten abbrechen</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>Open the restored folder</source>
        <translation>Den wiederhergestellten Ordner öffnen</translation>
    </message>
    <message>
        <source>Backups</source>
        <translation>Sicherungen</translation>
    </message>
    <message>
        <source>There is no backup yet.</source>
        <translation>Es gibt noch keine Sicherung.</translation>
    </message>
    <message>
        <source>Conversations: {0}, in the trash: {1}, messages: {2}, on the disk: {3}</source>
        <translation>Unterhaltungen: {0}, im Papierkorb: {1}, Nachrichten: {2}, auf dem Datenträger: {3}</translation>
    </message>
    <message>
        <source>Not checked yet.</source>
        <translation>Noch nicht geprüft.</translation>
    </message>
    <message>
        <source>Checked last: {0}</source>
        <translation>Zuletzt geprüft: {0}</translation>
    </message>
    <message>
        <source>Checking…</source>
        <translation>Wird geprüft…</translation>
    </message>
    <message>
        <source>Automatic. {0}</source>
        <translation>Automatisch. {0}</translation>
    </message>
    <message>
        <source>Backup of {0}: {1}, {2}</source>
        <translation>Sicherung von {0}: {1}, {2}</translation>
    </message>
    <message>
        <source>It cannot be brought back. Conversations and other backups stay.</source>
        <translation>Sie lässt sich nicht zurückholen. Unterhaltungen und andere Sicherungen bleiben.</translation>
    </message>
    <message>
        <source>Delete this backup?</source>
        <translation>Diese Sicherung löschen?</translation>
    </message>
    <message>
        <source>It cannot be brought back. Your current conversations stay.</source>
        <translation>Sie lässt sich nicht zurückholen. Ihre jetzigen Unterhaltungen bleiben.</translation>
    </message>
    <message>
        <source>Delete the copy that was made before an upgrade?</source>
        <translation>Die vor einer Aktualisierung angelegte Kopie löschen?</translation>
    </message>
    <message>
        <source>Delete backup</source>
        <translation>Sicherung löschen</translation>
    </message>
    <message>
        <source>Keep</source>
        <translation>Behalten</translation>
    </message>
    <message>
        <source>Delete for good</source>
        <translation>Endgültig löschen</translation>
    </message>
    <message>
        <source>Data folder</source>
        <translation>Datenordner</translation>
    </message>
    <message>
        <source>Frees the space of deleted conversations</source>
        <translation>Gibt den Platz gelöschter Unterhaltungen frei</translation>
    </message>
    <message>
        <source>Reads everything saved, and repairs damage if possible</source>
        <translation>Liest alles Gespeicherte und repariert Schäden, wenn möglich</translation>
    </message>
    <message>
        <source>Conversations, pictures and settings are in one folder on this computer. The program checks the conversations now and then, when it is idle.</source>
        <translation>Unterhaltungen, Bilder und Einstellungen liegen in einem Ordner auf diesem Computer. Das Programm prüft die Unterhaltungen hin und wieder, wenn es nichts zu tun hat.</translation>
    </message>
    <message>
        <source>A backup holds conversations, pictures, saved files and settings; keys stay in the keyring. It is restored into a new folder, so nothing that is here is overwritten.</source>
        <translation>Eine Sicherung enthält Unterhaltungen, Bilder, gesicherte Dateien und Einstellungen; Schlüssel bleiben im Schlüsselbund. Sie wird in einen neuen Ordner wiederhergestellt, es wird also nichts überschrieben.</translation>
    </message>
    <message>
        <source>Conversations: {0}, messages: {1}</source>
        <translation>Unterhaltungen: {0}, Nachrichten: {1}</translation>
    </message>
    <message>
        <source>Restore into an empty folder</source>
        <translation>In einen leeren Ordner wiederherstellen</translation>
    </message>
</context>
<context>
    <name>TagDialog</name>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>Done</source>
        <translation>Fertig</translation>
    </message>
    <message>
        <source>Tags</source>
        <translation>Schlagwörter</translation>
    </message>
    <message>
        <source>Find a tag, or name a new one</source>
        <translation>Schlagwort suchen oder neues benennen</translation>
    </message>
    <message>
        <source>New tag “{0}”</source>
        <translation>Neues Schlagwort „{0}“</translation>
    </message>
    <message>
        <source>Type the name of a tag.</source>
        <translation>Geben Sie den Namen eines Schlagworts ein.</translation>
    </message>
    <message>
        <source>assigned</source>
        <translation>zugewiesen</translation>
    </message>
    <message>
        <source>assigned to some</source>
        <translation>einigen zugewiesen</translation>
    </message>
    <message>
        <source>not assigned</source>
        <translation>nicht zugewiesen</translation>
    </message>
</context>
<context>
    <name>Text</name>
    <message>
        <source>{0} ({1})</source>
        <translation>{0} ({1})</translation>
    </message>
    <message>
        <source>{0}: {1}</source>
        <translation>{0}: {1}</translation>
    </message>
    <message>
        <source>{0}, {1}</source>
        <comment>two names in a list</comment>
        <translation>{0}, {1}</translation>
    </message>
    <message>
        <source>{0} {1}</source>
        <comment>two sentences</comment>
        <translation>{0} {1}</translation>
    </message>
</context>
<context>
    <name>TextMenu</name>
    <message>
        <source>Menu: {0}</source>
        <translation>Menü: {0}</translation>
    </message>
    <message>
        <source>Text</source>
        <translation>Text</translation>
    </message>
</context>
<context>
    <name>TextView</name>
    <message>
        <source>Preview of the effect</source>
        <translation>Vorschau der Wirkung</translation>
    </message>
    <message>
        <source>What will happen. Not all of it is shown: {0} characters more</source>
        <translation>Was geschehen wird. Nicht alles wird gezeigt: {0} weitere Zeichen</translation>
    </message>
    <message>
        <source>What will happen</source>
        <translation>Was geschehen wird</translation>
    </message>
    <message>
        <source>{0}. Not all of it is shown.</source>
        <translation>{0}. Nicht alles wird gezeigt.</translation>
    </message>
    <message>
        <source>1 unchanged line</source>
        <translation>1 unveränderte Zeile</translation>
    </message>
    <message>
        <source>{0} unchanged lines</source>
        <translation>{0} unveränderte Zeilen</translation>
    </message>
    <message>
        <source>{0} more lines, not shown</source>
        <translation>Weitere Zeilen, nicht gezeigt: {0}</translation>
    </message>
    <message>
        <source>New file: {0}</source>
        <translation>Neue Datei: {0}</translation>
    </message>
    <message>
        <source>Deletes {0}: 1 line</source>
        <translation>Löscht {0}: 1 Zeile</translation>
    </message>
    <message>
        <source>Deletes {0}: {1} lines</source>
        <translation>Löscht {0}: {1} Zeilen</translation>
    </message>
    <message>
        <source>{0}: no change</source>
        <translation>{0}: keine Änderung</translation>
    </message>
    <message>
        <source>{0}: 1 line added, {2} removed</source>
        <translation>{0}: 1 Zeile hinzugefügt, {2} entfernt</translation>
    </message>
    <message>
        <source>{0}: {1} lines added, {2} removed</source>
        <translation>{0}: {1} Zeilen hinzugefügt, {2} entfernt</translation>
    </message>
</context>
<context>
    <name>TimingEditor</name>
    <message>
        <source>Once</source>
        <translation>Einmal</translation>
    </message>
    <message>
        <source>Every day</source>
        <translation>Jeden Tag</translation>
    </message>
    <message>
        <source>On days of the week</source>
        <translation>An bestimmten Wochentagen</translation>
    </message>
    <message>
        <source>Every month</source>
        <translation>Jeden Monat</translation>
    </message>
    <message>
        <source>Every … minutes</source>
        <translation>Alle … Minuten</translation>
    </message>
    <message>
        <source>By a cron line</source>
        <translation>Nach einer Cron-Zeile</translation>
    </message>
    <message>
        <source>Last day</source>
        <translation>Letzter Tag</translation>
    </message>
    <message>
        <source> minutes</source>
        <translation> Minuten</translation>
    </message>
    <message>
        <source>Choose at least one day.</source>
        <translation>Wählen Sie mindestens einen Tag.</translation>
    </message>
    <message>
        <source>Write a cron line of five fields.</source>
        <translation>Geben Sie eine Cron-Zeile mit fünf Feldern ein.</translation>
    </message>
    <message>
        <source>The next runs:</source>
        <translation>Die nächsten Läufe:</translation>
    </message>
    <message>
        <source>How often</source>
        <translation>Wie oft</translation>
    </message>
    <message>
        <source>Day</source>
        <translation>Tag</translation>
    </message>
    <message>
        <source>Time</source>
        <translation>Uhrzeit</translation>
    </message>
    <message>
        <source>Day of the month</source>
        <translation>Tag im Monat</translation>
    </message>
    <message>
        <source>Days of the week</source>
        <translation>Wochentage</translation>
    </message>
    <message>
        <source>Minutes between two runs</source>
        <translation>Minuten zwischen zwei Läufen</translation>
    </message>
    <message>
        <source>Cron line</source>
        <translation>Cron-Zeile</translation>
    </message>
    <message>
        <source>Minute, hour, day, month and weekday.</source>
        <translation>Minute, Stunde, Tag, Monat und Wochentag.</translation>
    </message>
</context>
<context>
    <name>TitleDialog</name>
    <message>
        <source>Title</source>
        <translation>Titel</translation>
    </message>
    <message>
        <source>Rename</source>
        <translation>Umbenennen</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
</context>
<context>
    <name>ToolChecklist</name>
    <message>
        <source>Find a tool</source>
        <translation>Werkzeug suchen</translation>
    </message>
    <message>
        <source>Not available now; the caller must have them</source>
        <translation>Gerade nicht verfügbar; der Aufrufende muss sie haben</translation>
    </message>
    <message>
        <source>{0} – may change something</source>
        <translation>{0} – ändert vielleicht etwas</translation>
    </message>
    <message>
        <source>None: it only thinks and answers.</source>
        <translation>Keine: Er denkt und antwortet nur.</translation>
    </message>
    <message>
        <source>{0} chosen. It never has more tools than its caller.</source>
        <translation>{0} gewählt. Er hat nie mehr Werkzeuge als der Aufrufende.</translation>
    </message>
</context>
<context>
    <name>ToolLabels</name>
    <message>
        <source>Reads files</source>
        <translation>Liest Dateien</translation>
    </message>
    <message>
        <source>Writes files</source>
        <translation>Schreibt Dateien</translation>
    </message>
    <message>
        <source>Runs commands</source>
        <translation>Führt Befehle aus</translation>
    </message>
    <message>
        <source>Uses the network</source>
        <translation>Nutzt das Netzwerk</translation>
    </message>
    <message>
        <source>Starts another agent</source>
        <translation>Startet einen anderen Agenten</translation>
    </message>
    <message>
        <source>Only reads</source>
        <translation>Liest nur</translation>
    </message>
    <message>
        <source>Can change things</source>
        <translation>Kann etwas ändern</translation>
    </message>
    <message>
        <source>Search the web</source>
        <translation>Im Web suchen</translation>
    </message>
    <message>
        <source>Search results</source>
        <translation>Suchergebnisse</translation>
    </message>
    <message>
        <source>Run code</source>
        <translation>Code ausführen</translation>
    </message>
    <message>
        <source>Output of the code</source>
        <translation>Ausgabe des Codes</translation>
    </message>
    <message>
        <source>Read a web page</source>
        <translation>Webseite lesen</translation>
    </message>
    <message>
        <source>Search in files</source>
        <translation>In Dateien suchen</translation>
    </message>
</context>
<context>
    <name>ToolListModel</name>
    <message>
        <source>Changed: choose again</source>
        <translation>Geändert: neu wählen</translation>
    </message>
</context>
<context>
    <name>ToolServers</name>
    <message>
        <source>Waits until a conversation needs it.</source>
        <translation>Wartet, bis eine Unterhaltung ihn braucht.</translation>
    </message>
    <message>
        <source>Starting…</source>
        <translation>Wird gestartet…</translation>
    </message>
    <message>
        <source>It could not be started.</source>
        <translation>Er konnte nicht gestartet werden.</translation>
    </message>
    <message>
        <source>You need to sign in.</source>
        <translation>Sie müssen sich anmelden.</translation>
    </message>
    <message>
        <source>Off. Last test: {0}</source>
        <translation>Aus. Letzter Test: {0}</translation>
    </message>
    <message>
        <source>Off. The last test succeeded</source>
        <translation>Aus. Der letzte Test war erfolgreich</translation>
    </message>
    <message>
        <source>Off</source>
        <translation>Aus</translation>
    </message>
    <message>
        <source>Look at its log, correct it with Edit, then press Test.</source>
        <translation>Sehen Sie in seinem Protokoll nach, berichtigen Sie ihn mit „Bearbeiten“, und drücken Sie dann „Testen“.</translation>
    </message>
    <message>
        <source>Running</source>
        <translation>Läuft</translation>
    </message>
    <message>
        <source>protocol {0}</source>
        <translation>Protokoll {0}</translation>
    </message>
    <message>
        <source>1 tool</source>
        <translation>1 Werkzeug</translation>
    </message>
    <message>
        <source>{0} tools</source>
        <translation>{0} Werkzeuge</translation>
    </message>
    <message>
        <source>The server says nothing about it.</source>
        <translation>Der Server sagt nichts darüber.</translation>
    </message>
    <message>
        <source>The server says: it only reads.</source>
        <translation>Der Server sagt: Es liest nur.</translation>
    </message>
    <message>
        <source>The server says: it can change things.</source>
        <translation>Der Server sagt: Es kann etwas ändern.</translation>
    </message>
    <message>
        <source>text</source>
        <translation>Text</translation>
    </message>
    <message>
        <source>whole number</source>
        <translation>ganze Zahl</translation>
    </message>
    <message>
        <source>number</source>
        <translation>Zahl</translation>
    </message>
    <message>
        <source>yes or no</source>
        <translation>ja oder nein</translation>
    </message>
    <message>
        <source>object</source>
        <translation>Objekt</translation>
    </message>
    <message>
        <source>nothing</source>
        <translation>nichts</translation>
    </message>
    <message>
        <source>list</source>
        <translation>Liste</translation>
    </message>
    <message>
        <source>list ({0})</source>
        <translation>Liste ({0})</translation>
    </message>
    <message>
        <source> or </source>
        <translation> oder </translation>
    </message>
    <message>
        <source>anything</source>
        <translation>beliebig</translation>
    </message>
</context>
<context>
    <name>Tools</name>
    <message>
        <source>Built in</source>
        <translation>Eingebaut</translation>
    </message>
    <message>
        <source>{0} (not here now)</source>
        <translation>{0} (gerade nicht hier)</translation>
    </message>
    <message>
        <source>Every tool</source>
        <translation>Jedes Werkzeug</translation>
    </message>
</context>
<context>
    <name>ToolsPane</name>
    <message>
        <source>Description of the tool</source>
        <translation>Beschreibung des Werkzeugs</translation>
    </message>
    <message>
        <source>The agent may call it</source>
        <translation>Der Agent darf es aufrufen</translation>
    </message>
    <message>
        <source>This server offers no tools.</source>
        <translation>Dieser Server bietet keine Werkzeuge an.</translation>
    </message>
    <message>
        <source>The tools of this server are not known yet. Press Test to see them.</source>
        <translation>Die Werkzeuge dieses Servers sind noch nicht bekannt. „Testen“ zeigt sie.</translation>
    </message>
    <message>
        <source>It has no description.</source>
        <translation>Es hat keine Beschreibung.</translation>
    </message>
    <message>
        <source>How to treat {0}</source>
        <translation>So wird {0} behandelt</translation>
    </message>
    <message>
        <source>The agent may call {0}</source>
        <translation>Der Agent darf {0} aufrufen</translation>
    </message>
    <message>
        <source>As the server says ({0})</source>
        <translation>Wie der Server sagt ({0})</translation>
    </message>
    <message>
        <source>To be safe ({0})</source>
        <translation>Sicherheitshalber ({0})</translation>
    </message>
    <message>
        <source>This is not trusted.</source>
        <translation>Dieser Angabe wird nicht vertraut.</translation>
    </message>
    <message>
        <source>Tools of {0}</source>
        <translation>Werkzeuge von {0}</translation>
    </message>
    <message>
        <source>You said that this tool only reads, but it has changed since. Check it, and choose again.</source>
        <translation>Sie haben angegeben, dass dieses Werkzeug nur liest, aber es hat sich seither geändert. Prüfen Sie es, und wählen Sie neu.</translation>
    </message>
</context>
<context>
    <name>Transcript</name>
    <message>
        <source>Table</source>
        <translation>Tabelle</translation>
    </message>
    <message>
        <source>Tool call: {0}</source>
        <translation>Werkzeugaufruf: {0}</translation>
    </message>
    <message>
        <source>Code</source>
        <translation>Code</translation>
    </message>
    <message>
        <source>Code: {0}</source>
        <translation>Code: {0}</translation>
    </message>
    <message>
        <source>Copied</source>
        <translation>Kopiert</translation>
    </message>
    <message>
        <source>Copy</source>
        <translation>Kopieren</translation>
    </message>
    <message>
        <source>No wrap</source>
        <translation>Kein Umbruch</translation>
    </message>
    <message>
        <source>Wrap</source>
        <translation>Umbrechen</translation>
    </message>
    <message>
        <source>Copy code</source>
        <translation>Code kopieren</translation>
    </message>
    <message>
        <source>Wrap lines</source>
        <translation>Zeilen umbrechen</translation>
    </message>
    <message>
        <source>Save code as…</source>
        <translation>Code speichern unter…</translation>
    </message>
    <message>
        <source>Save as…</source>
        <translation>Speichern unter…</translation>
    </message>
    <message>
        <source>text</source>
        <translation>Text</translation>
    </message>
    <message>
        <source>⟨{0} × {1}⟩</source>
        <translation>⟨{0} × {1}⟩</translation>
    </message>
    <message>
        <source>… (this line is too long and was cut)</source>
        <translation>… (diese Zeile ist zu lang und wurde abgeschnitten)</translation>
    </message>
    <message>
        <source>Diagrams are drawn by an optional part that is not installed here. Install the program with it: {0}. Until then the source is shown.</source>
        <translation>Diagramme zeichnet ein optionaler Teil, der hier nicht installiert ist. Installieren Sie das Programm mit ihm: {0}. Bis dahin wird der Quelltext gezeigt.</translation>
    </message>
    <message>
        <source>This diagram is too long to be drawn: more than {0} characters.</source>
        <translation>Dieses Diagramm ist zu lang, um gezeichnet zu werden: mehr als {0} Zeichen.</translation>
    </message>
    <message>
        <source>Drawing took too long and was stopped. A smaller diagram may work.</source>
        <translation>Das Zeichnen dauerte zu lange und wurde beendet. Ein kleineres Diagramm gelingt vielleicht.</translation>
    </message>
    <message>
        <source>This diagram cannot be drawn: {0}. Ask the model to correct it, or correct the source yourself.</source>
        <translation>Dieses Diagramm lässt sich nicht zeichnen: {0}. Bitten Sie das Modell, es zu berichtigen, oder berichtigen Sie den Quelltext selbst.</translation>
    </message>
    <message>
        <source>Drawing stopped early, perhaps because memory ran out. A smaller diagram may work.</source>
        <translation>Das Zeichnen brach ab, vielleicht aus Mangel an Arbeitsspeicher. Ein kleineres Diagramm gelingt vielleicht.</translation>
    </message>
    <message>
        <source>no reason was given</source>
        <translation>ohne Angabe eines Grundes</translation>
    </message>
    <message>
        <source>Drawing…</source>
        <translation>Wird gezeichnet…</translation>
    </message>
    <message>
        <source>Stop drawing</source>
        <translation>Zeichnen anhalten</translation>
    </message>
    <message>
        <source>Show source</source>
        <translation>Quelltext anzeigen</translation>
    </message>
    <message>
        <source>Show diagram</source>
        <translation>Diagramm anzeigen</translation>
    </message>
    <message>
        <source>Open diagram</source>
        <translation>Diagramm öffnen</translation>
    </message>
    <message>
        <source>Open picture: {0}</source>
        <translation>Bild öffnen: {0}</translation>
    </message>
    <message>
        <source>Picture</source>
        <translation>Bild</translation>
    </message>
    <message>
        <source>{0} cannot be shown</source>
        <translation>{0} lässt sich nicht anzeigen</translation>
    </message>
    <message>
        <source>Picture: {0}</source>
        <translation>Bild: {0}</translation>
    </message>
    <message>
        <source>Open picture</source>
        <translation>Bild öffnen</translation>
    </message>
    <message>
        <source>Stop loading</source>
        <translation>Laden anhalten</translation>
    </message>
    <message>
        <source>Load anyway</source>
        <translation>Trotzdem laden</translation>
    </message>
    <message>
        <source>Try again</source>
        <translation>Erneut versuchen</translation>
    </message>
    <message>
        <source>Load picture</source>
        <translation>Bild laden</translation>
    </message>
    <message>
        <source>Loading from {0}…</source>
        <translation>Wird von {0} geladen…</translation>
    </message>
    <message>
        <source>This picture is damaged: its size cannot be read.</source>
        <translation>Dieses Bild ist beschädigt: Seine Größe lässt sich nicht lesen.</translation>
    </message>
    <message>
        <source>Try again, or open its address in a browser.</source>
        <translation>Versuchen Sie es erneut, oder öffnen Sie seine Adresse in einem Browser.</translation>
    </message>
    <message>
        <source>This formula is too long to be drawn.</source>
        <translation>Diese Formel ist zu lang, um gezeichnet zu werden.</translation>
    </message>
    <message>
        <source>This formula is nested too deeply to be drawn.</source>
        <translation>Diese Formel ist zu tief verschachtelt, um gezeichnet zu werden.</translation>
    </message>
    <message>
        <source>This formula takes too long to be drawn.</source>
        <translation>Diese Formel zu zeichnen, dauert zu lange.</translation>
    </message>
    <message>
        <source>This formula is too large to be drawn.</source>
        <translation>Diese Formel ist zu groß, um gezeichnet zu werden.</translation>
    </message>
    <message>
        <source>This formula is too wide for its line.</source>
        <translation>Diese Formel ist zu breit für ihre Zeile.</translation>
    </message>
    <message>
        <source>This formula is empty.</source>
        <translation>Diese Formel ist leer.</translation>
    </message>
    <message>
        <source>This formula cannot be drawn: {0} is not known.</source>
        <translation>Diese Formel lässt sich nicht zeichnen: {0} ist nicht bekannt.</translation>
    </message>
    <message>
        <source>This formula cannot be drawn: it contains the character {0}.</source>
        <translation>Diese Formel lässt sich nicht zeichnen: Sie enthält das Zeichen {0}.</translation>
    </message>
    <message>
        <source>This formula cannot be drawn: two superscripts or two subscripts follow each other.</source>
        <translation>Diese Formel lässt sich nicht zeichnen: Zwei Hochstellungen oder zwei Tiefstellungen folgen aufeinander.</translation>
    </message>
    <message>
        <source>This formula cannot be drawn: a bracket or a block is opened but not closed, or the reverse.</source>
        <translation>Diese Formel lässt sich nicht zeichnen: Eine Klammer oder ein Block wird geöffnet und nicht geschlossen, oder umgekehrt.</translation>
    </message>
    <message>
        <source>This formula cannot be drawn: something in it is missing.</source>
        <translation>Diese Formel lässt sich nicht zeichnen: Etwas darin fehlt.</translation>
    </message>
    <message>
        <source>This formula cannot be drawn.</source>
        <translation>Diese Formel lässt sich nicht zeichnen.</translation>
    </message>
    <message>
        <source>Formula: {0}</source>
        <translation>Formel: {0}</translation>
    </message>
    <message>
        <source>Source {0}: {1}</source>
        <translation>Quelle {0}: {1}</translation>
    </message>
    <message>
        <source>Show all {0} sources</source>
        <translation>Alle {0} Quellen anzeigen</translation>
    </message>
    <message>
        <source>Sources</source>
        <translation>Quellen</translation>
    </message>
    <message>
        <source>Copying… {0} messages so far.</source>
        <translation>Wird kopiert… bisher {0} Nachrichten.</translation>
    </message>
    <message>
        <source>Menu: {0}</source>
        <translation>Menü: {0}</translation>
    </message>
    <message>
        <source>Selection</source>
        <translation>Auswahl</translation>
    </message>
    <message>
        <source>&amp;Copy</source>
        <translation>&amp;Kopieren</translation>
    </message>
    <message>
        <source>Copy as &amp;Markdown</source>
        <translation>Als &amp;Markdown kopieren</translation>
    </message>
    <message>
        <source>Select &amp;all</source>
        <translation>&amp;Alles auswählen</translation>
    </message>
    <message>
        <source>Fi&amp;nd in conversation</source>
        <translation>In der Unterhaltung &amp;suchen</translation>
    </message>
    <message>
        <source>Copied.</source>
        <translation>Kopiert.</translation>
    </message>
    <message>
        <source>Copy m&amp;essage</source>
        <translation>&amp;Nachricht kopieren</translation>
    </message>
    <message>
        <source>Copy message as Mar&amp;kdown</source>
        <translation>Nachricht als Mark&amp;down kopieren</translation>
    </message>
    <message>
        <source>Copy con&amp;versation as Markdown</source>
        <translation>&amp;Unterhaltung als Markdown kopieren</translation>
    </message>
    <message>
        <source>Copy link to t&amp;his message</source>
        <translation>Link zu dieser Nac&amp;hricht kopieren</translation>
    </message>
    <message>
        <source>Link to {0}</source>
        <translation>Link zu {0}</translation>
    </message>
    <message>
        <source>Copy &amp;link</source>
        <translation>&amp;Link kopieren</translation>
    </message>
    <message>
        <source>&amp;Open link</source>
        <translation>Link ö&amp;ffnen</translation>
    </message>
    <message>
        <source>&amp;Back to the text</source>
        <translation>&amp;Zurück zum Text</translation>
    </message>
    <message>
        <source>&amp;Go to footnote</source>
        <translation>Zur Fußn&amp;ote</translation>
    </message>
    <message>
        <source>Footnote</source>
        <translation>Fußnote</translation>
    </message>
    <message>
        <source>Copy &amp;formula as LaTeX</source>
        <translation>Fo&amp;rmel als LaTeX kopieren</translation>
    </message>
    <message>
        <source>Copy p&amp;icture</source>
        <translation>&amp;Bild kopieren</translation>
    </message>
    <message>
        <source>Copy &amp;table as Markdown</source>
        <translation>&amp;Tabelle als Markdown kopieren</translation>
    </message>
    <message>
        <source>Copy table as C&amp;SV</source>
        <translation>Tabelle als &amp;CSV kopieren</translation>
    </message>
    <message>
        <source>This picture was not copied: it is damaged or too large. Open it to see the reason.</source>
        <translation>Dieses Bild wurde nicht kopiert: Es ist beschädigt oder zu groß. Öffnen Sie es, um den Grund zu sehen.</translation>
    </message>
    <message>
        <source>Formula</source>
        <translation>Formel</translation>
    </message>
    <message>
        <source>There is no answer yet.</source>
        <translation>Es gibt noch keine Antwort.</translation>
    </message>
    <message>
        <source>There is no code block yet.</source>
        <translation>Es gibt noch keinen Codeblock.</translation>
    </message>
    <message>
        <source>Back to the text</source>
        <translation>Zurück zum Text</translation>
    </message>
    <message>
        <source>What can I do for you?</source>
        <translation>Was kann ich für Sie tun?</translation>
    </message>
    <message>
        <source>Write a message below. You can paste or drop pictures and files.</source>
        <translation>Schreiben Sie unten eine Nachricht. Auch Bilder und Dateien lassen sich einfügen oder hineinziehen.</translation>
    </message>
    <message>
        <source>nothing changed</source>
        <translation>nichts geändert</translation>
    </message>
    <message>
        <source>{0} of {1} done</source>
        <translation>{0} von {1} erledigt</translation>
    </message>
    <message>
        <source>Regenerate with…</source>
        <translation>Neu generieren mit…</translation>
    </message>
    <message>
        <source>{0} of {1}</source>
        <translation>{0} von {1}</translation>
    </message>
    <message>
        <source>Copy your message</source>
        <translation>Ihre Nachricht kopieren</translation>
    </message>
    <message>
        <source>Copy this answer</source>
        <translation>Diese Antwort kopieren</translation>
    </message>
    <message>
        <source>Branch from your message</source>
        <translation>Ab Ihrer Nachricht verzweigen</translation>
    </message>
    <message>
        <source>Branch from this answer</source>
        <translation>Ab dieser Antwort verzweigen</translation>
    </message>
    <message>
        <source>Delete your message…</source>
        <translation>Ihre Nachricht löschen…</translation>
    </message>
    <message>
        <source>Delete this answer…</source>
        <translation>Diese Antwort löschen…</translation>
    </message>
    <message>
        <source>Branch from here</source>
        <translation>Ab hier verzweigen</translation>
    </message>
    <message>
        <source>Delete…</source>
        <translation>Löschen…</translation>
    </message>
    <message>
        <source>Edit</source>
        <translation>Bearbeiten</translation>
    </message>
    <message>
        <source>Edit your message</source>
        <translation>Ihre Nachricht bearbeiten</translation>
    </message>
    <message>
        <source>Regenerate</source>
        <translation>Neu generieren</translation>
    </message>
    <message>
        <source>Regenerate this answer</source>
        <translation>Diese Antwort neu generieren</translation>
    </message>
    <message>
        <source>Regenerate this answer with…</source>
        <translation>Diese Antwort neu generieren mit…</translation>
    </message>
    <message>
        <source>Continue after your message</source>
        <translation>Nach Ihrer Nachricht fortfahren</translation>
    </message>
    <message>
        <source>Continue this answer</source>
        <translation>Diese Antwort fortsetzen</translation>
    </message>
    <message>
        <source>This is the first version.</source>
        <translation>Das ist die erste Version.</translation>
    </message>
    <message>
        <source>This is the newest version.</source>
        <translation>Das ist die neueste Version.</translation>
    </message>
    <message>
        <source>Previous version</source>
        <translation>Vorherige Version</translation>
    </message>
    <message>
        <source>Next version</source>
        <translation>Nächste Version</translation>
    </message>
    <message>
        <source>Previous version of your message</source>
        <translation>Vorherige Version Ihrer Nachricht</translation>
    </message>
    <message>
        <source>Previous version of this answer</source>
        <translation>Vorherige Version dieser Antwort</translation>
    </message>
    <message>
        <source>Next version of your message</source>
        <translation>Nächste Version Ihrer Nachricht</translation>
    </message>
    <message>
        <source>Next version of this answer</source>
        <translation>Nächste Version dieser Antwort</translation>
    </message>
    <message>
        <source>Show what followed</source>
        <translation>Anzeigen, was folgte</translation>
    </message>
    <message>
        <source>The model is still working. Wait, or press Stop first.</source>
        <translation>Das Modell arbeitet noch. Warten Sie, oder drücken Sie erst „Anhalten“.</translation>
    </message>
    <message>
        <source>Assistant said</source>
        <translation>Der Assistent schrieb</translation>
    </message>
    <message>
        <source>Not finished</source>
        <translation>Nicht fertig</translation>
    </message>
    <message>
        <source>Thinking</source>
        <translation>Nachdenken</translation>
    </message>
    <message>
        <source>Thinking…</source>
        <translation>Denkt nach…</translation>
    </message>
    <message>
        <source>Thought</source>
        <translation>Nachgedacht</translation>
    </message>
    <message>
        <source>Thought for {0}</source>
        <translation>{0} nachgedacht</translation>
    </message>
    <message>
        <source>Show thinking</source>
        <translation>Gedanken anzeigen</translation>
    </message>
    <message>
        <source>{0} s</source>
        <translation>{0} s</translation>
    </message>
    <message>
        <source>{0} min {1} s</source>
        <translation>{0} min {1} s</translation>
    </message>
    <message>
        <source>You said</source>
        <translation>Sie schrieben</translation>
    </message>
    <message>
        <source>Show “{0}”</source>
        <translation>„{0}“ zeigen</translation>
    </message>
    <message>
        <source>Undo all changes since this message…</source>
        <translation>Alle Änderungen seit dieser Nachricht rückgängig machen…</translation>
    </message>
    <message>
        <source>Error</source>
        <translation>Fehler</translation>
    </message>
    <message>
        <source>Notice</source>
        <translation>Hinweis</translation>
    </message>
    <message>
        <source>Failed {0} times.</source>
        <translation>{0}-mal fehlgeschlagen.</translation>
    </message>
    <message>
        <source>Redo</source>
        <translation>Wiederherstellen</translation>
    </message>
    <message>
        <source>Copy details</source>
        <translation>Einzelheiten kopieren</translation>
    </message>
    <message>
        <source>Details</source>
        <translation>Einzelheiten</translation>
    </message>
    <message>
        <source>Show details</source>
        <translation>Einzelheiten anzeigen</translation>
    </message>
    <message>
        <source>Retry</source>
        <translation>Erneut versuchen</translation>
    </message>
    <message>
        <source>Open settings</source>
        <translation>Einstellungen öffnen</translation>
    </message>
    <message>
        <source>Continue</source>
        <translation>Fortsetzen</translation>
    </message>
    <message>
        <source>Ask anyway</source>
        <translation>Trotzdem fragen</translation>
    </message>
    <message>
        <source>Choose model</source>
        <translation>Modell auswählen</translation>
    </message>
    <message>
        <source>Unknown content</source>
        <translation>Unbekannter Inhalt</translation>
    </message>
    <message>
        <source>This version cannot show this content. It is saved unchanged.</source>
        <translation>Diese Version kann diesen Inhalt nicht anzeigen. Er ist unverändert gespeichert.</translation>
    </message>
    <message>
        <source>Server step: {0}</source>
        <translation>Schritt des Servers: {0}</translation>
    </message>
    <message>
        <source>Server step</source>
        <translation>Schritt des Servers</translation>
    </message>
    <message>
        <source>{0} · {1} s</source>
        <translation>{0} · {1} s</translation>
    </message>
    <message>
        <source>Undone</source>
        <translation>Rückgängig gemacht</translation>
    </message>
    <message>
        <source>tool</source>
        <translation>Werkzeug</translation>
    </message>
    <message>
        <source>Undo</source>
        <translation>Rückgängig</translation>
    </message>
    <message>
        <source>Writing</source>
        <translation>Wird geschrieben</translation>
    </message>
    <message>
        <source>Pending</source>
        <translation>Ausstehend</translation>
    </message>
    <message>
        <source>Waiting for you</source>
        <translation>Wartet auf Sie</translation>
    </message>
    <message>
        <source>Running</source>
        <translation>Läuft</translation>
    </message>
    <message>
        <source>Done</source>
        <translation>Fertig</translation>
    </message>
    <message>
        <source>Failed</source>
        <translation>Fehlgeschlagen</translation>
    </message>
    <message>
        <source>Denied</source>
        <translation>Abgelehnt</translation>
    </message>
    <message>
        <source>Cancelled</source>
        <translation>Abgebrochen</translation>
    </message>
    <message>
        <source>Timed out</source>
        <translation>Zeit abgelaufen</translation>
    </message>
    <message>
        <source>Limit reached</source>
        <translation>Grenze erreicht</translation>
    </message>
    <message>
        <source>Unknown</source>
        <translation>Unbekannt</translation>
    </message>
    <message>
        <source>Review</source>
        <translation>Ansehen</translation>
    </message>
    <message>
        <source>Undo this call</source>
        <translation>Diesen Aufruf rückgängig machen</translation>
    </message>
    <message>
        <source>Redo this call</source>
        <translation>Diesen Aufruf wiederherstellen</translation>
    </message>
    <message>
        <source>edited</source>
        <translation>geändert</translation>
    </message>
    <message>
        <source>Preparing the arguments…</source>
        <translation>Die Argumente werden vorbereitet…</translation>
    </message>
    <message>
        <source>command</source>
        <translation>Befehl</translation>
    </message>
    <message>
        <source>arguments</source>
        <translation>Argumente</translation>
    </message>
    <message>
        <source>arguments, edited</source>
        <translation>Argumente, geändert</translation>
    </message>
    <message>
        <source>steps</source>
        <translation>Schritte</translation>
    </message>
    <message>
        <source>output</source>
        <translation>Ausgabe</translation>
    </message>
    <message>
        <source>result</source>
        <translation>Ergebnis</translation>
    </message>
    <message>
        <source>Preparing the result…</source>
        <translation>Das Ergebnis wird vorbereitet…</translation>
    </message>
    <message>
        <source>You denied this call.</source>
        <translation>Sie haben diesen Aufruf abgelehnt.</translation>
    </message>
    <message>
        <source>You denied this call and said: {0}</source>
        <translation>Sie haben diesen Aufruf abgelehnt und dazu geschrieben: {0}</translation>
    </message>
    <message>
        <source>You changed the arguments of this call before it ran.</source>
        <translation>Sie haben die Argumente dieses Aufrufs geändert, bevor er ausgeführt wurde.</translation>
    </message>
</context>
<context>
    <name>TranscriptNavigation</name>
    <message>
        <source>Caret browsing is on. F7 or Esc turns it off.</source>
        <translation>Die Textcursor-Navigation ist an. F7 oder Esc schaltet sie ab.</translation>
    </message>
    <message>
        <source>Caret browsing is off.</source>
        <translation>Die Textcursor-Navigation ist aus.</translation>
    </message>
</context>
<context>
    <name>TranscriptView</name>
    <message>
        <source>Transcript</source>
        <translation>Gesprächsverlauf</translation>
    </message>
</context>
<context>
    <name>TrashDialog</name>
    <message>
        <source>Deleted conversations</source>
        <translation>Gelöschte Unterhaltungen</translation>
    </message>
    <message>
        <source>Conversations stay in the trash for {0} days. Then they are deleted for good.</source>
        <translation>Unterhaltungen bleiben {0} Tage im Papierkorb. Dann werden sie endgültig gelöscht.</translation>
    </message>
    <message>
        <source>The trash is empty.</source>
        <translation>Der Papierkorb ist leer.</translation>
    </message>
    <message>
        <source>Restore</source>
        <translation>Zurückholen</translation>
    </message>
    <message>
        <source>Delete for good…</source>
        <translation>Endgültig löschen…</translation>
    </message>
    <message>
        <source>Empty trash…</source>
        <translation>Papierkorb leeren…</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>Schließen</translation>
    </message>
    <message>
        <source>Keep</source>
        <translation>Behalten</translation>
    </message>
    <message>
        <source>Delete for good</source>
        <translation>Endgültig löschen</translation>
    </message>
    <message>
        <source>Really delete for good</source>
        <translation>Wirklich endgültig löschen</translation>
    </message>
    <message>
        <source>Deleted for good in {0} days</source>
        <translation>Wird in {0} Tagen endgültig gelöscht</translation>
    </message>
    <message>
        <source>Deleted for good soon</source>
        <translation>Wird bald endgültig gelöscht</translation>
    </message>
    <message>
        <source>{0}, deleted {1}. {2}</source>
        <translation>{0}, gelöscht {1}. {2}</translation>
    </message>
    <message>
        <source>Delete “{0}” for good? This cannot be undone.</source>
        <translation>„{0}“ endgültig löschen? Das lässt sich nicht rückgängig machen.</translation>
    </message>
    <message>
        <source>Delete this conversation for good? This cannot be undone.</source>
        <translation>Diese Unterhaltung endgültig löschen? Das lässt sich nicht rückgängig machen.</translation>
    </message>
    <message>
        <source>Delete everything in the trash for good? This cannot be undone.</source>
        <translation>Alles im Papierkorb endgültig löschen? Das lässt sich nicht rückgängig machen.</translation>
    </message>
    <message>
        <source>Delete all {0} conversations for good? This cannot be undone.</source>
        <translation>Alle {0} Unterhaltungen endgültig löschen? Das lässt sich nicht rückgängig machen.</translation>
    </message>
    <message>
        <source>Trash</source>
        <translation>Papierkorb</translation>
    </message>
</context>
<context>
    <name>TrashPresenter</name>
    <message>
        <source>“{0}” was put into the trash.</source>
        <translation>„{0}“ wurde in den Papierkorb gelegt.</translation>
    </message>
</context>
<context>
    <name>TrayPresenter</name>
    <message>
        <source>Desktop Agent</source>
        <translation>Desktop Agent</translation>
    </message>
    <message>
        <source>Show</source>
        <translation>Anzeigen</translation>
    </message>
    <message>
        <source>New conversation</source>
        <translation>Neue Unterhaltung</translation>
    </message>
    <message>
        <source>Quick question</source>
        <translation>Schnelle Frage</translation>
    </message>
    <message>
        <source>Waiting approvals</source>
        <translation>Wartende Freigaben</translation>
    </message>
    <message>
        <source>Quit</source>
        <translation>Beenden</translation>
    </message>
    <message>
        <source>The window is closed, and Desktop Agent goes on. Its icon in the tray brings the window back.</source>
        <translation>Das Fenster ist geschlossen, und Desktop Agent arbeitet weiter. Sein Symbol im Infobereich holt das Fenster zurück.</translation>
    </message>
    <message>
        <source>The model is working.</source>
        <translation>Das Modell arbeitet.</translation>
    </message>
    <message>
        <source>Calls that wait for you: {0}</source>
        <translation>Aufrufe, die auf Sie warten: {0}</translation>
    </message>
    <message>
        <source>Questions of MCP servers that wait for you: {0}</source>
        <translation>Fragen von MCP-Servern, die auf Sie warten: {0}</translation>
    </message>
</context>
<context>
    <name>UndoDialog</name>
    <message>
        <source>Undo</source>
        <translation>Rückgängig</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>Redo</source>
        <translation>Wiederherstellen</translation>
    </message>
    <message>
        <source>If ticked: {0}</source>
        <translation>Wenn angekreuzt: {0}</translation>
    </message>
    <message>
        <source>Redoing…</source>
        <translation>Wird wiederhergestellt…</translation>
    </message>
    <message>
        <source>Undoing…</source>
        <translation>Wird rückgängig gemacht…</translation>
    </message>
    <message>
        <source>The file was changed after the undo. Tick it to redo the change anyway.</source>
        <translation>Die Datei wurde nach dem Rückgängigmachen geändert. Kreuzen Sie sie an, um die Änderung trotzdem wiederherzustellen.</translation>
    </message>
    <message>
        <source>The file was changed after the call. Tick it to put it back anyway; Redo then restores the later change.</source>
        <translation>Die Datei wurde nach dem Aufruf geändert. Kreuzen Sie sie an, um sie trotzdem zurückzusetzen; „Wiederherstellen“ bringt die spätere Änderung dann zurück.</translation>
    </message>
    <message>
        <source>Later changes are saved first: Undo restores them.</source>
        <translation>Spätere Änderungen werden vorher gesichert: „Rückgängig“ bringt sie zurück.</translation>
    </message>
    <message>
        <source>Later changes are saved first: Redo restores them.</source>
        <translation>Spätere Änderungen werden vorher gesichert: „Wiederherstellen“ bringt sie zurück.</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>Schließen</translation>
    </message>
    <message>
        <source>There is nothing that could be redone.</source>
        <translation>Es gibt nichts, was sich wiederherstellen ließe.</translation>
    </message>
    <message>
        <source>There is nothing left to undo: the files are already as they were before.</source>
        <translation>Es gibt nichts mehr rückgängig zu machen: Die Dateien sind schon so wie vorher.</translation>
    </message>
    <message>
        <source>There is nothing that could be undone.</source>
        <translation>Es gibt nichts, was sich rückgängig machen ließe.</translation>
    </message>
    <message>
        <source>Files that were changed since stay as they are, unless you tick them.</source>
        <translation>Dateien, die seither geändert wurden, bleiben, wie sie sind, wenn Sie sie nicht ankreuzen.</translation>
    </message>
    <message>
        <source>These files return to their state before the undo. Messages stay.</source>
        <translation>Diese Dateien bekommen wieder den Stand vor dem Rückgängigmachen. Nachrichten bleiben.</translation>
    </message>
    <message>
        <source>These files return to their earlier state. Messages stay.</source>
        <translation>Diese Dateien bekommen wieder ihren früheren Stand. Nachrichten bleiben.</translation>
    </message>
    <message>
        <source>“{0}” also undoes its other effects.</source>
        <translation>„{0}“ macht auch seine anderen Wirkungen rückgängig.</translation>
    </message>
    <message>
        <source>These calls cannot be undone:</source>
        <translation>Diese Aufrufe lassen sich nicht rückgängig machen:</translation>
    </message>
    <message>
        <source>{0} times</source>
        <translation>{0}-mal</translation>
    </message>
    <message>
        <source>once</source>
        <translation>einmal</translation>
    </message>
    <message>
        <source>It changed {0}</source>
        <translation>Geändert wurde {0}</translation>
    </message>
    <message>
        <source>The agent is still working. Stop it first; then this list is updated.</source>
        <translation>Der Agent arbeitet noch. Halten Sie ihn erst an; dann wird diese Liste aktualisiert.</translation>
    </message>
    <message>
        <source>Stop</source>
        <translation>Anhalten</translation>
    </message>
    <message>
        <source>Undo changes</source>
        <translation>Änderungen rückgängig machen</translation>
    </message>
    <message>
        <source>Progress of the undoing</source>
        <translation>Fortschritt des Rückgängigmachens</translation>
    </message>
</context>
<context>
    <name>UndoFileList</name>
    <message>
        <source>Files that would be changed</source>
        <translation>Dateien, die geändert würden</translation>
    </message>
    <message>
        <source>File</source>
        <translation>Datei</translation>
    </message>
    <message>
        <source>Result</source>
        <translation>Ergebnis</translation>
    </message>
    <message>
        <source>Even if changed</source>
        <translation>Auch wenn geändert</translation>
    </message>
    <message>
        <source>{0}, in part</source>
        <translation>{0}, zum Teil</translation>
    </message>
    <message>
        <source>Put back</source>
        <translation>Zurückgesetzt</translation>
    </message>
    <message>
        <source>Brought back</source>
        <translation>Zurückgeholt</translation>
    </message>
    <message>
        <source>Removed again</source>
        <translation>Wieder entfernt</translation>
    </message>
    <message>
        <source>Stays as it is</source>
        <translation>Bleibt, wie es ist</translation>
    </message>
</context>
<context>
    <name>UndoPresenter</name>
    <message>
        <source>Redo what “{0}” changed</source>
        <translation>Wiederherstellen, was „{0}“ geändert hat</translation>
    </message>
    <message>
        <source>Redo what was undone</source>
        <translation>Wiederherstellen, was rückgängig gemacht wurde</translation>
    </message>
    <message>
        <source>Undo what “{0}” changed</source>
        <translation>Rückgängig machen, was „{0}“ geändert hat</translation>
    </message>
    <message>
        <source>Undo all changes since “{0}”</source>
        <translation>Alle Änderungen seit „{0}“ rückgängig machen</translation>
    </message>
    <message>
        <source>Undo all changes</source>
        <translation>Alle Änderungen rückgängig machen</translation>
    </message>
    <message>
        <source>Undo</source>
        <translation>Rückgängig</translation>
    </message>
    <message>
        <source>Redo</source>
        <translation>Wiederherstellen</translation>
    </message>
    <message>
        <source>Review…</source>
        <translation>Ansehen…</translation>
    </message>
</context>
<context>
    <name>UnstoredBar</name>
    <message>
        <source>Not stored</source>
        <translation>Nicht gespeichert</translation>
    </message>
    <message>
        <source>This conversation is lost when it is closed, and when the program ends or crashes. Changes that tools make to files stay, and cannot be undone from here. Rules that you make are stored.</source>
        <translation>Diese Unterhaltung geht verloren, wenn sie geschlossen wird und wenn das Programm endet oder abstürzt. Änderungen von Werkzeugen an Dateien bleiben und lassen sich von hier aus nicht rückgängig machen. Regeln, die Sie anlegen, werden gespeichert.</translation>
    </message>
    <message>
        <source>Keep it</source>
        <translation>Behalten</translation>
    </message>
    <message>
        <source>Keep this conversation: store it</source>
        <translation>Diese Unterhaltung behalten: speichern</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>Schließen</translation>
    </message>
    <message>
        <source>Close this conversation</source>
        <translation>Diese Unterhaltung schließen</translation>
    </message>
</context>
<context>
    <name>UnstoredList</name>
    <message>
        <source>Conversations that are not stored</source>
        <translation>Unterhaltungen, die nicht gespeichert werden</translation>
    </message>
    <message>
        <source>Not stored</source>
        <translation>Nicht gespeichert</translation>
    </message>
    <message>
        <source>{0}, not stored</source>
        <translation>{0}, nicht gespeichert</translation>
    </message>
    <message>
        <source>Close “{0}”</source>
        <translation>„{0}“ schließen</translation>
    </message>
</context>
<context>
    <name>UnstoredPresenter</name>
    <message>
        <source>Close the conversation?</source>
        <translation>Die Unterhaltung schließen?</translation>
    </message>
    <message>
        <source>Close Desktop Agent?</source>
        <translation>Desktop Agent schließen?</translation>
    </message>
    <message>
        <source>This conversation is not stored. Close it?</source>
        <translation>Diese Unterhaltung ist nicht gespeichert. Schließen?</translation>
    </message>
    <message>
        <source>Closing it loses what is in it. “Keep it” stores it as an ordinary conversation.</source>
        <translation>Beim Schließen geht ihr Inhalt verloren. „Behalten“ speichert sie als gewöhnliche Unterhaltung.</translation>
    </message>
    <message>
        <source>Keep it</source>
        <translation>Behalten</translation>
    </message>
    <message>
        <source>A conversation is not stored. Close it?</source>
        <translation>Eine Unterhaltung ist nicht gespeichert. Schließen?</translation>
    </message>
    <message>
        <source>Conversations that are not stored: {0}. Close them?</source>
        <translation>Nicht gespeicherte Unterhaltungen: {0}. Schließen?</translation>
    </message>
    <message>
        <source>Closing loses what is in them. “Keep them” stores them as ordinary conversations.</source>
        <translation>Beim Schließen geht ihr Inhalt verloren. „Alle behalten“ speichert sie als gewöhnliche Unterhaltungen.</translation>
    </message>
    <message>
        <source>Keep them</source>
        <translation>Alle behalten</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>Schließen</translation>
    </message>
</context>
<context>
    <name>UpdateNotice</name>
    <message>
        <source>Open its page</source>
        <translation>Seite öffnen</translation>
    </message>
</context>
<context>
    <name>UpdateSection</name>
    <message>
        <source>Check for a new version</source>
        <translation>Nach einer neuen Version suchen</translation>
    </message>
    <message>
        <source>Open its page</source>
        <translation>Seite öffnen</translation>
    </message>
    <message>
        <source>New versions</source>
        <translation>Neue Versionen</translation>
    </message>
    <message>
        <source>“{0}” is asked once a day: Settings → Network.</source>
        <translation>„{0}“ wird einmal am Tag gefragt: Einstellungen → Netzwerk.</translation>
    </message>
    <message>
        <source>The button asks “{0}”. To ask once a day, turn it on in Settings → Network.</source>
        <translation>Die Schaltfläche fragt „{0}“. Einmal am Tag geschieht das, wenn Sie es unter Einstellungen → Netzwerk einschalten.</translation>
    </message>
    <message>
        <source>Nothing is downloaded or installed.</source>
        <translation>Nichts wird heruntergeladen oder installiert.</translation>
    </message>
    <message>
        <source>Not checked for a newer version yet.</source>
        <translation>Noch nicht nach einer neueren Version gesucht.</translation>
    </message>
</context>
<context>
    <name>UrlElicitationView</name>
    <message>
        <source>Message from the server</source>
        <translation>Nachricht des Servers</translation>
    </message>
    <message>
        <source>“{0}” says (not verified):</source>
        <translation>„{0}“ sagt (nicht geprüft):</translation>
    </message>
    <message>
        <source>Address</source>
        <translation>Adresse</translation>
    </message>
    <message>
        <source>Open the page</source>
        <translation>Die Seite öffnen</translation>
    </message>
    <message>
        <source>Open the page first.</source>
        <translation>Öffnen Sie erst die Seite.</translation>
    </message>
    <message>
        <source>Not clear where this leads</source>
        <translation>Unklar, wohin das führt</translation>
    </message>
    <message>
        <source>Leads to {0}</source>
        <translation>Führt zu {0}</translation>
    </message>
    <message>
        <source>Such letters can look like others. Compare the name with the one that you know, or type the name that you know into your browser.</source>
        <translation>Solche Buchstaben können wie andere aussehen. Vergleichen Sie den Namen mit dem, den Sie kennen, oder tippen Sie den bekannten Namen in Ihren Browser.</translation>
    </message>
    <message>
        <source>This name has unusual letters that cannot be shown.</source>
        <translation>Dieser Name hat ungewöhnliche Buchstaben, die sich nicht anzeigen lassen.</translation>
    </message>
    <message>
        <source>This name has unusual letters: it reads “{0}”, with {1}.</source>
        <translation>Dieser Name hat ungewöhnliche Buchstaben: Er liest sich „{0}“, mit {1}.</translation>
    </message>
    <message>
        <source>This address is not opened. Only https addresses are opened, and http on this computer, if nothing in them is ambiguous and they do not lead into a private network that the server is not in. Decline, and report the address to the maker of the server.</source>
        <translation>Diese Adresse wird nicht geöffnet. Geöffnet werden nur https-Adressen, und http auf diesem Computer, wenn nichts darin mehrdeutig ist und sie nicht in ein privates Netz führen, in dem der Server nicht ist. Lehnen Sie ab, und melden Sie die Adresse dem Hersteller des Servers.</translation>
    </message>
    <message>
        <source>The text “{0}@” before the host can look like another host.</source>
        <translation>Der Text „{0}@“ vor dem Host kann wie ein anderer Host aussehen.</translation>
    </message>
    <message>
        <source>It opens in your browser. What you enter there goes to that page, not to this program. Come back when you are done.</source>
        <translation>Sie öffnet sich in Ihrem Browser. Was Sie dort eingeben, geht an diese Seite, nicht an Desktop Agent. Kommen Sie danach zurück.</translation>
    </message>
    <message>
        <source>Opened in your browser.</source>
        <translation>In Ihrem Browser geöffnet.</translation>
    </message>
</context>
<context>
    <name>UsageChart</name>
    <message>
        <source>Bars: {0}. The highest: {1}. Use the arrow keys to read each bar.</source>
        <translation>Balken: {0}. Der höchste: {1}. Die Pfeiltasten lesen jeden vor.</translation>
    </message>
</context>
<context>
    <name>UsageMeter</name>
    <message>
        <source>Tokens and cost</source>
        <translation>Token und Kosten</translation>
    </message>
    <message>
        <source>Usage of all conversations</source>
        <translation>Verbrauch aller Unterhaltungen</translation>
    </message>
    <message>
        <source>{0} of {1} tokens</source>
        <translation>{0} von {1} Token</translation>
    </message>
    <message>
        <source>{0} tokens</source>
        <translation>{0} Token</translation>
    </message>
    <message>
        <source>{0} % from cache</source>
        <translation>{0} % aus dem Cache</translation>
    </message>
    <message>
        <source>Context: {0} % of {1} tokens</source>
        <translation>Kontext: {0} % von {1} Token</translation>
    </message>
    <message>
        <source>Input: {0} tokens</source>
        <translation>Eingabe: {0} Token</translation>
    </message>
    <message>
        <source>Output: {0} tokens</source>
        <translation>Ausgabe: {0} Token</translation>
    </message>
    <message>
        <source>Reasoning, part of the output: {0} tokens</source>
        <translation>Nachdenken, Teil der Ausgabe: {0} Token</translation>
    </message>
    <message>
        <source>Read from cache: {0} tokens</source>
        <translation>Aus dem Cache gelesen: {0} Token</translation>
    </message>
    <message>
        <source>Written to cache: {0} tokens</source>
        <translation>In den Cache geschrieben: {0} Token</translation>
    </message>
    <message>
        <source>Cost: not known</source>
        <translation>Kosten: nicht bekannt</translation>
    </message>
    <message>
        <source>Cost: {0}; that of some answers is not known</source>
        <translation>Kosten: {0}; die einiger Antworten sind nicht bekannt</translation>
    </message>
    <message>
        <source>Cost: {0}</source>
        <translation>Kosten: {0}</translation>
    </message>
</context>
<context>
    <name>UsageSettings</name>
    <message>
        <source>Time</source>
        <translation>Zeitraum</translation>
    </message>
    <message>
        <source>7 days</source>
        <translation>7 Tage</translation>
    </message>
    <message>
        <source>30 days</source>
        <translation>30 Tage</translation>
    </message>
    <message>
        <source>This year</source>
        <translation>Dieses Jahr</translation>
    </message>
    <message>
        <source>All time</source>
        <translation>Gesamte Zeit</translation>
    </message>
    <message>
        <source>Grouped by</source>
        <translation>Gruppiert nach</translation>
    </message>
    <message>
        <source>By day</source>
        <translation>Nach Tag</translation>
    </message>
    <message>
        <source>By model</source>
        <translation>Nach Modell</translation>
    </message>
    <message>
        <source>By workspace folder</source>
        <translation>Nach Arbeitsordner</translation>
    </message>
    <message>
        <source>In the chart</source>
        <translation>Im Diagramm</translation>
    </message>
    <message>
        <source>Cost</source>
        <translation>Kosten</translation>
    </message>
    <message>
        <source>Tokens</source>
        <translation>Token</translation>
    </message>
    <message>
        <source>Export as CSV…</source>
        <translation>Als CSV exportieren…</translation>
    </message>
    <message>
        <source>No model was used in this period.</source>
        <translation>In diesem Zeitraum wurde kein Modell verwendet.</translation>
    </message>
    <message>
        <source>This includes answers of models without a price: a money budget does not count those. A token budget does.</source>
        <translation>Darin sind Antworten von Modellen ohne Preis enthalten: Ein Geldbudget zählt sie nicht, ein Token-Budget schon.</translation>
    </message>
    <message>
        <source>Total</source>
        <translation>Summe</translation>
    </message>
    <message>
        <source>{0} tokens</source>
        <translation>{0} Token</translation>
    </message>
    <message>
        <source>Cost not known</source>
        <translation>Kosten nicht bekannt</translation>
    </message>
    <message>
        <source>Show all {0} rows</source>
        <translation>Alle {0} Zeilen anzeigen</translation>
    </message>
    <message>
        <source>{0} of what models read came from the cache.</source>
        <translation>{0} von dem, was Modelle gelesen haben, kam aus dem Cache.</translation>
    </message>
    <message>
        <source>{0} That saved {1}.</source>
        <translation>{0} Das hat {1} gespart.</translation>
    </message>
    <message>
        <source>Answers whose cost is not known: {0} of {1}. You can set prices on the page Models.</source>
        <translation>Antworten, deren Kosten nicht bekannt sind: {0} von {1}. Preise können Sie auf der Seite „Modelle“ angeben.</translation>
    </message>
    <message>
        <source>Cost by day</source>
        <translation>Kosten nach Tag</translation>
    </message>
    <message>
        <source>Tokens by day</source>
        <translation>Token nach Tag</translation>
    </message>
    <message>
        <source>Cost by model</source>
        <translation>Kosten nach Modell</translation>
    </message>
    <message>
        <source>Tokens by model</source>
        <translation>Token nach Modell</translation>
    </message>
    <message>
        <source>Cost by workspace folder</source>
        <translation>Kosten nach Arbeitsordner</translation>
    </message>
    <message>
        <source>Tokens by workspace folder</source>
        <translation>Token nach Arbeitsordner</translation>
    </message>
    <message>
        <source>{0}: nothing</source>
        <translation>{0}: nichts</translation>
    </message>
    <message>
        <source>{0}: {1}, {2} tokens</source>
        <translation>{0}: {1}, {2} Token</translation>
    </message>
    <message>
        <source>Every answer counts, also those of specialists, summaries, titles and MCP servers. Deleting a conversation does not change the counts. Days follow the clock of this computer.</source>
        <translation>Jede Antwort zählt, auch die von Spezialisten, für Zusammenfassungen, Titel und MCP-Server. Das Löschen einer Unterhaltung ändert die Zählung nicht. Tage richten sich nach der Uhr dieses Computers.</translation>
    </message>
    <message>
        <source>For all conversations together, in every window on this data folder. At 80 % you are warned. At 100 % no model is asked any more, until you raise the budget or the day or month is over. “Ask anyway” makes one exception.</source>
        <translation>Für alle Unterhaltungen zusammen, in jedem Fenster mit diesem Datenordner. Bei 80 % werden Sie gewarnt. Bei 100 % wird kein Modell mehr gefragt, bis Sie das Budget erhöhen oder der Tag oder Monat vorbei ist. „Trotzdem fragen“ macht eine Ausnahme.</translation>
    </message>
    <message>
        <source>Budgets</source>
        <translation>Budgets</translation>
    </message>
    <message>
        <source>not known</source>
        <translation>nicht bekannt</translation>
    </message>
    <message>
        <source>{0} %</source>
        <translation>{0} %</translation>
    </message>
    <message>
        <source>No folder</source>
        <translation>Kein Ordner</translation>
    </message>
    <message>
        <source>Unknown model</source>
        <translation>Unbekanntes Modell</translation>
    </message>
    <message>
        <source>Money today</source>
        <translation>Geld heute</translation>
    </message>
    <message>
        <source>Tokens today</source>
        <translation>Token heute</translation>
    </message>
    <message>
        <source>Money this month</source>
        <translation>Geld in diesem Monat</translation>
    </message>
    <message>
        <source>Tokens this month</source>
        <translation>Token in diesem Monat</translation>
    </message>
    <message>
        <source>{0} of {1} ({2} %)</source>
        <translation>{0} von {1} ({2} %)</translation>
    </message>
</context>
<context>
    <name>UsageTable</name>
    <message>
        <source>Usage</source>
        <translation>Verbrauch</translation>
    </message>
</context>
<context>
    <name>UsageTableModel</name>
    <message>
        <source>Day</source>
        <translation>Tag</translation>
    </message>
    <message>
        <source>Model</source>
        <translation>Modell</translation>
    </message>
    <message>
        <source>Workspace folder</source>
        <translation>Arbeitsordner</translation>
    </message>
    <message>
        <source>Answers</source>
        <translation>Antworten</translation>
    </message>
    <message>
        <source>Input</source>
        <translation>Eingabe</translation>
    </message>
    <message>
        <source>Output</source>
        <translation>Ausgabe</translation>
    </message>
    <message>
        <source>From cache</source>
        <translation>Aus Cache</translation>
    </message>
    <message>
        <source>Tokens</source>
        <translation>Token</translation>
    </message>
    <message>
        <source>Cost</source>
        <translation>Kosten</translation>
    </message>
</context>
<context>
    <name>ValueRow</name>
    <message>
        <source>Name of the variable</source>
        <translation>Name der Variablen</translation>
    </message>
    <message>
        <source>Value of the variable</source>
        <translation>Wert der Variablen</translation>
    </message>
    <message>
        <source>Add variable</source>
        <translation>Variable hinzufügen</translation>
    </message>
    <message>
        <source>Remove the variable {0}</source>
        <translation>Die Variable {0} entfernen</translation>
    </message>
    <message>
        <source>Secret values go to the keyring and are never shown again. Plain ones are kept in a file.</source>
        <translation>Geheime Werte kommen in den Schlüsselbund und werden nie wieder gezeigt. Gewöhnliche liegen in einer Datei.</translation>
    </message>
    <message>
        <source>The name of a variable has only letters, digits and “_”, and does not begin with a digit. Change it.</source>
        <translation>Der Name einer Variablen hat nur Buchstaben, Ziffern und „_“ und beginnt nicht mit einer Ziffer. Ändern Sie ihn.</translation>
    </message>
    <message>
        <source>The secret variable “{0}” has no value. Enter it, or remove the variable.</source>
        <translation>Die geheime Variable „{0}“ hat keinen Wert. Geben Sie ihn ein, oder entfernen Sie die Variable.</translation>
    </message>
    <message>
        <source>There are two variables “{0}”. Remove one of them.</source>
        <translation>Es gibt zwei Variablen „{0}“. Entfernen Sie eine davon.</translation>
    </message>
    <message>
        <source>Name of the header</source>
        <translation>Name der Kopfzeile</translation>
    </message>
    <message>
        <source>Value of the header</source>
        <translation>Wert der Kopfzeile</translation>
    </message>
    <message>
        <source>Add header</source>
        <translation>Kopfzeile hinzufügen</translation>
    </message>
    <message>
        <source>Remove the header {0}</source>
        <translation>Die Kopfzeile {0} entfernen</translation>
    </message>
    <message>
        <source>The values of headers go to the keyring and are never shown again.</source>
        <translation>Die Werte von Kopfzeilen kommen in den Schlüsselbund und werden nie wieder gezeigt.</translation>
    </message>
    <message>
        <source>The name of a header has only letters, digits and “-”. Change it.</source>
        <translation>Der Name einer Kopfzeile hat nur Buchstaben, Ziffern und „-“. Ändern Sie ihn.</translation>
    </message>
    <message>
        <source>The header “{0}” has no value. Enter it, or remove the header.</source>
        <translation>Die Kopfzeile „{0}“ hat keinen Wert. Geben Sie ihn ein, oder entfernen Sie die Kopfzeile.</translation>
    </message>
    <message>
        <source>There are two headers “{0}”. Remove one of them.</source>
        <translation>Es gibt zwei Kopfzeilen „{0}“. Entfernen Sie eine davon.</translation>
    </message>
    <message>
        <source>Name</source>
        <translation>Name</translation>
    </message>
    <message>
        <source>Where the value is kept</source>
        <translation>Wo der Wert liegt</translation>
    </message>
    <message>
        <source>Secret</source>
        <translation>Geheim</translation>
    </message>
    <message>
        <source>Plain</source>
        <translation>Gewöhnlich</translation>
    </message>
    <message>
        <source>Kept in the keyring</source>
        <translation>Im Schlüsselbund aufbewahrt</translation>
    </message>
    <message>
        <source>Value</source>
        <translation>Wert</translation>
    </message>
    <message>
        <source>Type here to replace it.</source>
        <translation>Zum Ersetzen hier eingeben.</translation>
    </message>
</context>
<context>
    <name>WaitingButton</name>
    <message>
        <source>Waiting approvals</source>
        <translation>Wartende Freigaben</translation>
    </message>
</context>
<context>
    <name>WelcomePage</name>
    <message>
        <source>Looking for model servers on this computer…</source>
        <translation>Modellserver auf diesem Computer werden gesucht…</translation>
    </message>
    <message>
        <source>Welcome to Desktop Agent</source>
        <translation>Willkommen bei Desktop Agent</translation>
    </message>
    <message>
        <source>Connect a model to begin. You can add others at any time.</source>
        <translation>Verbinden Sie ein Modell, um zu beginnen. Weitere lassen sich jederzeit hinzufügen.</translation>
    </message>
    <message>
        <source>Back</source>
        <translation>Zurück</translation>
    </message>
    <message>
        <source>Try the demo</source>
        <translation>Demo ausprobieren</translation>
    </message>
    <message>
        <source>Connect a model</source>
        <translation>Modell verbinden</translation>
    </message>
    <message>
        <source>Your conversations stay as they are.</source>
        <translation>Ihre Unterhaltungen bleiben, wie sie sind.</translation>
    </message>
    <message>
        <source>Welcome</source>
        <translation>Willkommen</translation>
    </message>
    <message>
        <source>On this computer</source>
        <translation>Auf diesem Computer</translation>
    </message>
    <message>
        <source>With an API key</source>
        <translation>Mit einem API-Schlüssel</translation>
    </message>
    <message>
        <source>Any other server</source>
        <translation>Ein anderer Server</translation>
    </message>
    <message>
        <source>Run a model file…</source>
        <translation>Modelldatei ausführen…</translation>
    </message>
    <message>
        <source>Any other server…</source>
        <translation>Ein anderer Server…</translation>
    </message>
    <message>
        <source>Look again</source>
        <translation>Erneut suchen</translation>
    </message>
    <message>
        <source>Keys go into the keyring of your system, never into a file.</source>
        <translation>Schlüssel kommen in den Schlüsselbund Ihres Systems, nie in eine Datei.</translation>
    </message>
    <message>
        <source>A server at any address, such as vLLM, LiteLLM or a gateway at work.</source>
        <translation>Ein Server unter einer beliebigen Adresse, etwa vLLM, LiteLLM oder ein Gateway am Arbeitsplatz.</translation>
    </message>
    <message>
        <source>Just looking? The offline demo shows what this program does. A script answers in it, no real model.</source>
        <translation>Nur mal schauen? Die Offline-Demo zeigt, was dieses Programm kann. In ihr antwortet ein Skript, kein echtes Modell.</translation>
    </message>
</context>
<context>
    <name>WindowActions</name>
    <message>
        <source>Commands</source>
        <translation>Befehle</translation>
    </message>
    <message>
        <source>Waiting approvals</source>
        <translation>Wartende Freigaben</translation>
    </message>
    <message>
        <source>inbox pending permission allow deny decide calls</source>
        <translation>Eingang offen Erlaubnis erlauben ablehnen entscheiden Aufrufe</translation>
    </message>
    <message>
        <source>Scheduled prompts</source>
        <translation>Geplante Prompts</translation>
    </message>
    <message>
        <source>cron automatic recurring repeat daily weekly timer run by itself</source>
        <translation>cron automatisch wiederkehrend wiederholen täglich wöchentlich zeitplan geplant von selbst</translation>
    </message>
    <message>
        <source>chat start create</source>
        <translation>Chat beginnen anlegen erstellen</translation>
    </message>
    <message>
        <source>New conversation</source>
        <translation>Neue Unterhaltung</translation>
    </message>
    <message>
        <source>private temporary incognito secret never saved off the record</source>
        <translation>privat vorübergehend inkognito geheim nie gespeichert vertraulich</translation>
    </message>
    <message>
        <source>New conversation that is not stored</source>
        <translation>Neue Unterhaltung, die nicht gespeichert wird</translation>
    </message>
    <message>
        <source>Quick question</source>
        <translation>Schnelle Frage</translation>
    </message>
    <message>
        <source>ask small popup clipboard</source>
        <translation>fragen klein Popup Zwischenablage</translation>
    </message>
    <message>
        <source>create directory project</source>
        <translation>anlegen Verzeichnis Projekt</translation>
    </message>
    <message>
        <source>New folder…</source>
        <translation>Neuer Ordner…</translation>
    </message>
    <message>
        <source>Export this conversation…</source>
        <translation>Diese Unterhaltung exportieren…</translation>
    </message>
    <message>
        <source>save share markdown html json pdf print</source>
        <translation>speichern teilen Datei markdown html json zip pdf drucken</translation>
    </message>
    <message>
        <source>Export all conversations…</source>
        <translation>Alle Unterhaltungen exportieren…</translation>
    </message>
    <message>
        <source>Import conversations…</source>
        <translation>Unterhaltungen importieren…</translation>
    </message>
    <message>
        <source>chatgpt claude history archive load</source>
        <translation>chatgpt claude Verlauf Archiv laden</translation>
    </message>
    <message>
        <source>claude code codex opencode gemini goose jan lm studio history found</source>
        <translation>claude code codex opencode gemini goose jan lm studio Verlauf gefunden</translation>
    </message>
    <message>
        <source>Import from other assistants…</source>
        <translation>Aus anderen Assistenten importieren…</translation>
    </message>
    <message>
        <source>provider server key add login</source>
        <translation>Anbieter Server Schlüssel hinzufügen anmelden</translation>
    </message>
    <message>
        <source>Connect a model</source>
        <translation>Modell verbinden</translation>
    </message>
    <message>
        <source>example offline scripted</source>
        <translation>Beispiel ohne Netz</translation>
    </message>
    <message>
        <source>Try the demo</source>
        <translation>Demo ausprobieren</translation>
    </message>
    <message>
        <source>repair damaged disk</source>
        <translation>reparieren beschädigt Datenträger</translation>
    </message>
    <message>
        <source>Check saved conversations</source>
        <translation>Gespeicherte Unterhaltungen prüfen</translation>
    </message>
    <message>
        <source>Quit</source>
        <translation>Beenden</translation>
    </message>
    <message>
        <source>exit close end</source>
        <translation>schließen verlassen Ende</translation>
    </message>
    <message>
        <source>Undo the last change to conversations</source>
        <translation>Die letzte Änderung an Unterhaltungen rückgängig machen</translation>
    </message>
    <message>
        <source>restore</source>
        <translation>wiederherstellen</translation>
    </message>
    <message>
        <source>Undo all changes since this message…</source>
        <translation>Alle Änderungen seit dieser Nachricht rückgängig machen…</translation>
    </message>
    <message>
        <source>revert restore files rewind</source>
        <translation>zurücknehmen wiederherstellen Dateien zurückspulen</translation>
    </message>
    <message>
        <source>Find in conversation</source>
        <translation>In der Unterhaltung suchen</translation>
    </message>
    <message>
        <source>search words text</source>
        <translation>suchen Wörter Text</translation>
    </message>
    <message>
        <source>Find next</source>
        <translation>Weitersuchen</translation>
    </message>
    <message>
        <source>Find previous</source>
        <translation>Rückwärts suchen</translation>
    </message>
    <message>
        <source>Search conversations</source>
        <translation>Unterhaltungen durchsuchen</translation>
    </message>
    <message>
        <source>find titles list filter chats</source>
        <translation>finden Titel Liste filtern Chats</translation>
    </message>
    <message>
        <source>Copy last answer</source>
        <translation>Letzte Antwort kopieren</translation>
    </message>
    <message>
        <source>clipboard response reply message</source>
        <translation>Zwischenablage Erwiderung Rückmeldung Nachricht</translation>
    </message>
    <message>
        <source>Copy last code block</source>
        <translation>Letzten Codeblock kopieren</translation>
    </message>
    <message>
        <source>clipboard source snippet program</source>
        <translation>Zwischenablage Quelltext Schnipsel Programm</translation>
    </message>
    <message>
        <source>Copy conversation as Markdown</source>
        <translation>Unterhaltung als Markdown kopieren</translation>
    </message>
    <message>
        <source>export save</source>
        <translation>exportieren speichern</translation>
    </message>
    <message>
        <source>preferences options configuration</source>
        <translation>Optionen Konfiguration Voreinstellungen</translation>
    </message>
    <message>
        <source>Settings</source>
        <translation>Einstellungen</translation>
    </message>
    <message>
        <source>Theme and appearance</source>
        <translation>Farbschema und Aussehen</translation>
    </message>
    <message>
        <source>dark light colours look font density zoom</source>
        <translation>dunkel hell Farben Schrift Dichte Zoom</translation>
    </message>
    <message>
        <source>Providers and keys</source>
        <translation>Anbieter und Schlüssel</translation>
    </message>
    <message>
        <source>api key server account</source>
        <translation>API-Schlüssel Server Konto</translation>
    </message>
    <message>
        <source>Rules</source>
        <translation>Regeln</translation>
    </message>
    <message>
        <source>permissions allowed tools always allow</source>
        <translation>Rechte erlaubte Werkzeuge immer erlauben</translation>
    </message>
    <message>
        <source>MCP servers</source>
        <translation>MCP-Server</translation>
    </message>
    <message>
        <source>tools plugins extensions</source>
        <translation>Werkzeuge Plugins Erweiterungen</translation>
    </message>
    <message>
        <source>Storage</source>
        <translation>Speicher</translation>
    </message>
    <message>
        <source>data folder disk</source>
        <translation>Datenordner Datenträger</translation>
    </message>
    <message>
        <source>Usage</source>
        <translation>Verbrauch</translation>
    </message>
    <message>
        <source>tokens cost money price spent budget limit statistics chart</source>
        <translation>Token Kosten Geld Preis ausgegeben Budget Grenze Statistik Diagramm</translation>
    </message>
    <message>
        <source>Show or hide the conversations</source>
        <translation>Unterhaltungen ein- oder ausblenden</translation>
    </message>
    <message>
        <source>sidebar list panel fold</source>
        <translation>Seitenleiste Liste einklappen</translation>
    </message>
    <message>
        <source>archived conversations</source>
        <translation>archivierte Unterhaltungen</translation>
    </message>
    <message>
        <source>Show the archive</source>
        <translation>Das Archiv anzeigen</translation>
    </message>
    <message>
        <source>deleted removed bin restore bring back</source>
        <translation>gelöscht entfernt wiederherstellen zurückholen</translation>
    </message>
    <message>
        <source>Trash</source>
        <translation>Papierkorb</translation>
    </message>
    <message>
        <source>Next conversation</source>
        <translation>Nächste Unterhaltung</translation>
    </message>
    <message>
        <source>Previous conversation</source>
        <translation>Vorherige Unterhaltung</translation>
    </message>
    <message>
        <source>Conversation {0}</source>
        <translation>Unterhaltung {0}</translation>
    </message>
    <message>
        <source>zoom in text size bigger font</source>
        <translation>Zoom vergrößern Textgröße größere Schrift</translation>
    </message>
    <message>
        <source>Larger text</source>
        <translation>Größerer Text</translation>
    </message>
    <message>
        <source>zoom out text size font</source>
        <translation>Zoom verkleinern Textgröße Schrift</translation>
    </message>
    <message>
        <source>Smaller text</source>
        <translation>Kleinerer Text</translation>
    </message>
    <message>
        <source>reset zoom</source>
        <translation>Zoom zurücksetzen</translation>
    </message>
    <message>
        <source>Normal text size</source>
        <translation>Normale Textgröße</translation>
    </message>
    <message>
        <source>Open the menu bar</source>
        <translation>Menüleiste öffnen</translation>
    </message>
    <message>
        <source>menus alt</source>
        <translation>Menüs alt</translation>
    </message>
    <message>
        <source>Caret browsing</source>
        <translation>Textcursor-Navigation</translation>
    </message>
    <message>
        <source>select cursor</source>
        <translation>auswählen Cursor Caret Textmarke</translation>
    </message>
    <message>
        <source>Pin this conversation</source>
        <translation>Diese Unterhaltung anheften</translation>
    </message>
    <message>
        <source>keep on top favourite star</source>
        <translation>oben halten Favorit Stern</translation>
    </message>
    <message>
        <source>Unpin this conversation</source>
        <translation>Diese Unterhaltung nicht mehr anheften</translation>
    </message>
    <message>
        <source>Archive this conversation</source>
        <translation>Diese Unterhaltung archivieren</translation>
    </message>
    <message>
        <source>hide put away</source>
        <translation>ausblenden weglegen</translation>
    </message>
    <message>
        <source>Bring this conversation back from the archive</source>
        <translation>Diese Unterhaltung aus dem Archiv zurückholen</translation>
    </message>
    <message>
        <source>unarchive restore</source>
        <translation>entarchivieren wiederherstellen</translation>
    </message>
    <message>
        <source>Move this conversation to a folder…</source>
        <translation>Diese Unterhaltung in einen Ordner verschieben…</translation>
    </message>
    <message>
        <source>organise sort</source>
        <translation>ordnen sortieren</translation>
    </message>
    <message>
        <source>Tags of this conversation…</source>
        <translation>Schlagwörter dieser Unterhaltung…</translation>
    </message>
    <message>
        <source>label keyword</source>
        <translation>Etikett Stichwort Tag</translation>
    </message>
    <message>
        <source>Duplicate this conversation</source>
        <translation>Diese Unterhaltung duplizieren</translation>
    </message>
    <message>
        <source>copy clone</source>
        <translation>kopieren klonen</translation>
    </message>
    <message>
        <source>Open this conversation in a new window</source>
        <translation>Diese Unterhaltung in einem neuen Fenster öffnen</translation>
    </message>
    <message>
        <source>detach</source>
        <translation>ablösen</translation>
    </message>
    <message>
        <source>Copy the link to this conversation</source>
        <translation>Link zu dieser Unterhaltung kopieren</translation>
    </message>
    <message>
        <source>url address share</source>
        <translation>URL Adresse teilen</translation>
    </message>
    <message>
        <source>Merge the selected conversations</source>
        <translation>Die ausgewählten Unterhaltungen zusammenführen</translation>
    </message>
    <message>
        <source>join combine</source>
        <translation>verbinden vereinen</translation>
    </message>
    <message>
        <source>title name chat</source>
        <translation>Titel Name Chat</translation>
    </message>
    <message>
        <source>Rename this conversation</source>
        <translation>Diese Unterhaltung umbenennen</translation>
    </message>
    <message>
        <source>tree versions history all</source>
        <translation>Baum Versionen Verlauf alle</translation>
    </message>
    <message>
        <source>Branches of this conversation</source>
        <translation>Zweige dieser Unterhaltung</translation>
    </message>
    <message>
        <source>compact shorten context</source>
        <translation>verdichten kürzen Kontext</translation>
    </message>
    <message>
        <source>Summarise older messages</source>
        <translation>Ältere Nachrichten zusammenfassen</translation>
    </message>
    <message>
        <source>remove chat trash bin</source>
        <translation>entfernen Chat Papierkorb</translation>
    </message>
    <message>
        <source>Delete this conversation</source>
        <translation>Diese Unterhaltung löschen</translation>
    </message>
    <message>
        <source>Choose model</source>
        <translation>Modell auswählen</translation>
    </message>
    <message>
        <source>switch change another</source>
        <translation>wechseln ändern anderes</translation>
    </message>
    <message>
        <source>Choose reasoning</source>
        <translation>Denkstufe auswählen</translation>
    </message>
    <message>
        <source>thinking effort</source>
        <translation>denken Denkstufe Reasoning Aufwand</translation>
    </message>
    <message>
        <source>Conversation settings</source>
        <translation>Einstellungen der Unterhaltung</translation>
    </message>
    <message>
        <source>temperature system prompt instructions parameters length of the answer</source>
        <translation>Temperatur Systemprompt Anweisungen Parameter Länge der Antwort</translation>
    </message>
    <message>
        <source>Choose mode</source>
        <translation>Modus auswählen</translation>
    </message>
    <message>
        <source>permissions approval plan accept edits</source>
        <translation>Rechte Berechtigungen Freigabe Planen Änderungen annehmen</translation>
    </message>
    <message>
        <source>Write a message</source>
        <translation>Nachricht schreiben</translation>
    </message>
    <message>
        <source>type prompt</source>
        <translation>tippen Prompt</translation>
    </message>
    <message>
        <source>Send the message</source>
        <translation>Die Nachricht senden</translation>
    </message>
    <message>
        <source>New line in the message</source>
        <translation>Neue Zeile in der Nachricht</translation>
    </message>
    <message>
        <source>Stop the answer</source>
        <translation>Die Antwort anhalten</translation>
    </message>
    <message>
        <source>cancel interrupt abort break</source>
        <translation>abbrechen unterbrechen stoppen</translation>
    </message>
    <message>
        <source>Attach files</source>
        <translation>Dateien anhängen</translation>
    </message>
    <message>
        <source>picture photo image text upload</source>
        <translation>Bild Foto Text hochladen</translation>
    </message>
    <message>
        <source>Waiting messages</source>
        <translation>Wartende Nachrichten</translation>
    </message>
    <message>
        <source>queue</source>
        <translation>Warteschlange</translation>
    </message>
    <message>
        <source>Answer the question</source>
        <translation>Die Frage beantworten</translation>
    </message>
    <message>
        <source>Edit last prompt</source>
        <translation>Letzten Prompt bearbeiten</translation>
    </message>
    <message>
        <source>change message correct</source>
        <translation>ändern Nachricht berichtigen</translation>
    </message>
    <message>
        <source>Regenerate answer</source>
        <translation>Antwort neu generieren</translation>
    </message>
    <message>
        <source>retry again answer anew</source>
        <translation>erneut versuchen neu antworten regenerieren wiederholen</translation>
    </message>
    <message>
        <source>go on resume after stop limit</source>
        <translation>weitermachen fortfahren nach anhalten stopp grenze</translation>
    </message>
    <message>
        <source>Continue answer</source>
        <translation>Antwort fortsetzen</translation>
    </message>
    <message>
        <source>Previous version</source>
        <translation>Vorherige Version</translation>
    </message>
    <message>
        <source>branch before after</source>
        <translation>Zweig davor danach</translation>
    </message>
    <message>
        <source>Next version</source>
        <translation>Nächste Version</translation>
    </message>
    <message>
        <source>Delete message…</source>
        <translation>Nachricht löschen…</translation>
    </message>
    <message>
        <source>remove message prompt answer for good</source>
        <translation>entfernen Nachricht Prompt Antwort endgültig</translation>
    </message>
    <message>
        <source>guide manual introduction how to</source>
        <translation>Anleitung Handbuch Einführung</translation>
    </message>
    <message>
        <source>Help</source>
        <translation>Hilfe</translation>
    </message>
    <message>
        <source>keys hotkeys bindings</source>
        <translation>Tasten Hotkeys Belegung</translation>
    </message>
    <message>
        <source>Keyboard shortcuts</source>
        <translation>Tastenkürzel</translation>
    </message>
    <message>
        <source>version licence program data folder</source>
        <translation>Version Lizenz Programm Datenordner</translation>
    </message>
    <message>
        <source>About Desktop Agent</source>
        <translation>Über Desktop Agent</translation>
    </message>
    <message>
        <source>license components libraries open source sbom</source>
        <translation>Lizenz Bestandteile Bibliotheken quelloffen Open Source SBOM</translation>
    </message>
    <message>
        <source>Licences</source>
        <translation>Lizenzen</translation>
    </message>
</context>
<context>
    <name>WindowLayout</name>
    <message>
        <source>Show or hide the conversations</source>
        <translation>Unterhaltungen ein- oder ausblenden</translation>
    </message>
    <message>
        <source>Width of the sidebar</source>
        <translation>Breite der Seitenleiste</translation>
    </message>
</context>
<context>
    <name>WorkspacePicker</name>
    <message>
        <source>Workspace folder</source>
        <translation>Arbeitsordner</translation>
    </message>
    <message>
        <source>Choose folder…</source>
        <translation>Ordner auswählen…</translation>
    </message>
    <message>
        <source>No folder</source>
        <translation>Kein Ordner</translation>
    </message>
    <message>
        <source>The agent works without files.</source>
        <translation>Der Agent arbeitet ohne Dateien.</translation>
    </message>
    <message>
        <source>Choose the workspace folder</source>
        <translation>Arbeitsordner auswählen</translation>
    </message>
</context>
<context>
    <name>_EmptyNote</name>
    <message>
        <source>No conversations in here yet</source>
        <translation>Hier sind noch keine Unterhaltungen</translation>
    </message>
    <message>
        <source>No conversations yet</source>
        <translation>Noch keine Unterhaltungen</translation>
    </message>
</context>
<context>
    <name>_HostList</name>
    <message>
        <source>The command can reach only these hosts:</source>
        <translation>Der Befehl erreicht nur diese Hosts:</translation>
    </message>
    <message>
        <source>This system cannot limit the command to certain hosts: it can use the whole network and the services of this computer. The command says that it needs:</source>
        <translation>Dieses System kann den Befehl nicht auf bestimmte Hosts beschränken: Er kann das ganze Netz und Dienste dieses Computers benutzen. Nach eigener Angabe braucht er:</translation>
    </message>
    <message>
        <source>Hosts</source>
        <translation>Hosts</translation>
    </message>
</context>
<context>
    <name>_MessageField</name>
    <message>
        <source>Message to the model, sent with Deny</source>
        <translation>Nachricht an das Modell, wird mit „Ablehnen“ gesendet</translation>
    </message>
    <message>
        <source>Message, sent with Deny</source>
        <translation>Nachricht, wird mit „Ablehnen“ gesendet</translation>
    </message>
    <message>
        <source>Message</source>
        <translation>Nachricht</translation>
    </message>
</context>
<context>
    <name>_MigrationCopies</name>
    <message>
        <source>Before a new version changes how conversations are saved, it makes a copy. You can open the copy in a new folder, with your current pictures and settings.</source>
        <translation>Bevor eine neue Version ändert, wie Unterhaltungen gespeichert werden, legt sie eine Kopie an. Sie können die Kopie in einem neuen Ordner öffnen, mit Ihren jetzigen Bildern und Einstellungen.</translation>
    </message>
    <message>
        <source>Copies made before an upgrade</source>
        <translation>Vor einer Aktualisierung angelegte Kopien</translation>
    </message>
    <message>
        <source>Written by version {0}</source>
        <translation>Geschrieben von Version {0}</translation>
    </message>
    <message>
        <source>Written by an earlier version, in its format {0}</source>
        <translation>Geschrieben von einer früheren Version, in ihrem Format {0}</translation>
    </message>
    <message>
        <source>Open in a new folder…</source>
        <translation>In einem neuen Ordner öffnen…</translation>
    </message>
    <message>
        <source>Delete…</source>
        <translation>Löschen…</translation>
    </message>
    <message>
        <source>Delete this copy</source>
        <translation>Diese Kopie löschen</translation>
    </message>
</context>
<context>
    <name>_ModelCard</name>
    <message>
        <source>runs</source>
        <translation>läuft</translation>
    </message>
    <message>
        <source>is being loaded</source>
        <translation>wird geladen</translation>
    </message>
    <message>
        <source>context {0}</source>
        <translation>Kontext {0}</translation>
    </message>
    <message>
        <source>Use</source>
        <translation>Verwenden</translation>
    </message>
    <message>
        <source>Run</source>
        <translation>Ausführen</translation>
    </message>
    <message>
        <source>Use {0} in this conversation</source>
        <translation>{0} in dieser Unterhaltung verwenden</translation>
    </message>
    <message>
        <source>Run {0}</source>
        <translation>{0} ausführen</translation>
    </message>
</context>
<context>
    <name>_PickDialog</name>
    <message>
        <source>Found</source>
        <translation>Gefunden</translation>
    </message>
</context>
<context>
    <name>_ReadOnlyBar</name>
    <message>
        <source>Continue here</source>
        <translation>Hier fortsetzen</translation>
    </message>
    <message>
        <source>Copies this conversation, which can then be continued with any model</source>
        <translation>Kopiert diese Unterhaltung, die sich dann mit jedem Modell fortsetzen lässt</translation>
    </message>
</context>
<context>
    <name>_ResultAnnouncer</name>
    <message>
        <source>Conversations found: {0}</source>
        <translation>Gefundene Unterhaltungen: {0}</translation>
    </message>
</context>
<context>
    <name>_SpellingMenu</name>
    <message>
        <source>No suggestions</source>
        <translation>Keine Vorschläge</translation>
    </message>
    <message>
        <source>Add to dictionary</source>
        <translation>Zum Wörterbuch hinzufügen</translation>
    </message>
    <message>
        <source>Ignore</source>
        <translation>Ignorieren</translation>
    </message>
</context>
<context>
    <name>_TitleDelegate</name>
    <message>
        <source>Title</source>
        <translation>Titel</translation>
    </message>
</context>
<context>
    <name>dates</name>
    <message>
        <source>MMM yyyy</source>
        <translation>MMM yyyy</translation>
    </message>
    <message>
        <source>Yesterday</source>
        <translation>Gestern</translation>
    </message>
    <message>
        <source>{0} {1}</source>
        <comment>a date and a time of day</comment>
        <translation>{0}, {1}</translation>
    </message>
    <message>
        <source>d MMM</source>
        <translation>d. MMM</translation>
    </message>
    <message>
        <source>d MMM yyyy</source>
        <translation>d. MMM yyyy</translation>
    </message>
</context>
</TS>
