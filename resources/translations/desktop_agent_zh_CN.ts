<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="zh_CN" sourcelanguage="en">
<context>
    <name>AboutPage</name>
    <message>
        <source>Open folder</source>
        <translation>打开文件夹</translation>
    </message>
    <message>
        <source>Open the data folder</source>
        <translation>打开数据文件夹</translation>
    </message>
    <message>
        <source>Data folder</source>
        <translation>数据文件夹</translation>
    </message>
    <message>
        <source>Conversations, pictures and settings. Keys are never here; they go into the keyring of your system.</source>
        <translation>对话、图片和设置。密钥从不存放在这里，而是存入系统的密钥环。</translation>
    </message>
    <message>
        <source>Licence</source>
        <translation>许可证</translation>
    </message>
    <message>
        <source>MIT. You may use, change and pass on this program; it comes without any warranty.</source>
        <translation>MIT。您可以使用、修改和分发本程序；本程序不附带任何担保。</translation>
    </message>
    <message>
        <source>All licences</source>
        <translation>所有许可证</translation>
    </message>
    <message>
        <source>Version {0}</source>
        <translation>版本 {0}</translation>
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
        <translation>一个不保存的对话</translation>
    </message>
    <message>
        <source>The answer is done.</source>
        <translation>回答已完成。</translation>
    </message>
    <message>
        <source>The answer could not be finished.</source>
        <translation>回答未能完成。</translation>
    </message>
    <message>
        <source>A question waits for your answer.</source>
        <translation>有问题正在等待您的回答。</translation>
    </message>
</context>
<context>
    <name>AnswerBar</name>
    <message>
        <source>Esc closes without an answer.</source>
        <translation>按 Esc 关闭，不作回答。</translation>
    </message>
</context>
<context>
    <name>AnswerChoices</name>
    <message>
        <source>Answer in your own words</source>
        <translation>用自己的话回答</translation>
    </message>
    <message>
        <source>{0}. {1}</source>
        <translation>{0}. {1}</translation>
    </message>
    <message>
        <source>Key {0}</source>
        <translation>{0} 键</translation>
    </message>
</context>
<context>
    <name>ApprovalDialog</name>
    <message>
        <source>Waiting calls</source>
        <translation>等待中的调用</translation>
    </message>
    <message>
        <source>{0} calls are waiting</source>
        <translation>{0} 个调用正在等待</translation>
    </message>
    <message>
        <source>No rule can be made from this call.</source>
        <translation>无法由此调用创建规则。</translation>
    </message>
    <message>
        <source>You are asked about every call of this tool.</source>
        <translation>此工具的每次调用都会询问您。</translation>
    </message>
    <message>
        <source>A rule is made from the original arguments. Discard your edits to make one.</source>
        <translation>规则根据原始参数创建。请放弃修改后再创建规则。</translation>
    </message>
    <message>
        <source>Approve tool call</source>
        <translation>批准工具调用</translation>
    </message>
</context>
<context>
    <name>ArgumentsPane</name>
    <message>
        <source>Schema of the arguments as JSON</source>
        <translation>以 JSON 表示的参数架构</translation>
    </message>
    <message>
        <source>Hide JSON</source>
        <translation>隐藏 JSON</translation>
    </message>
    <message>
        <source>Show as JSON</source>
        <translation>显示为 JSON</translation>
    </message>
    <message>
        <source>Hide arguments</source>
        <translation>隐藏参数</translation>
    </message>
    <message>
        <source>No arguments listed</source>
        <translation>未列出参数</translation>
    </message>
    <message>
        <source>Show 1 argument</source>
        <translation>显示 1 个参数</translation>
    </message>
    <message>
        <source>Show {0} arguments</source>
        <translation>显示 {0} 个参数</translation>
    </message>
    <message>
        <source>The first {0} of {1} characters.</source>
        <translation>{1} 个字符中的前 {0} 个。</translation>
    </message>
    <message>
        <source>The server lists no arguments for this tool.</source>
        <translation>服务器未列出此工具的参数。</translation>
    </message>
    <message>
        <source>These are the first {0}. The others are in the JSON.</source>
        <translation>这是前 {0} 个，其余在 JSON 中。</translation>
    </message>
    <message>
        <source>required</source>
        <translation>必填</translation>
    </message>
    <message>
        <source>optional</source>
        <translation>可选</translation>
    </message>
    <message>
        <source>One of: {0} and {1} more</source>
        <translation>以下之一：{0} 以及另外 {1} 个</translation>
    </message>
    <message>
        <source>One of: {0}</source>
        <translation>以下之一：{0}</translation>
    </message>
    <message>
        <source>Default: {0}</source>
        <translation>默认：{0}</translation>
    </message>
</context>
<context>
    <name>ArgumentsView</name>
    <message>
        <source>Arguments</source>
        <translation>参数</translation>
    </message>
    <message>
        <source>Arguments as JSON</source>
        <translation>以 JSON 表示的参数</translation>
    </message>
    <message>
        <source>Arguments, without the last {0} characters: “Edit arguments” shows all of them</source>
        <translation>参数，不含最后 {0} 个字符：“编辑参数”可显示全部</translation>
    </message>
    <message>
        <source>Checking…</source>
        <translation>正在检查…</translation>
    </message>
</context>
<context>
    <name>AttachmentChip</name>
    <message>
        <source>Remove</source>
        <translation>移除</translation>
    </message>
</context>
<context>
    <name>AttachmentRow</name>
    <message>
        <source>Remove all</source>
        <translation>全部移除</translation>
    </message>
    <message>
        <source>Attachments</source>
        <translation>附件</translation>
    </message>
    <message>
        <source>This text comes from a link. Read all of it before you send it.</source>
        <translation>这段文字来自一个链接。发送之前请通读全文。</translation>
    </message>
</context>
<context>
    <name>Attachments</name>
    <message>
        <source>All files</source>
        <translation>所有文件</translation>
    </message>
    <message>
        <source>Pictures</source>
        <translation>图片</translation>
    </message>
    <message>
        <source>Pasted picture</source>
        <translation>粘贴的图片</translation>
    </message>
    <message>
        <source>Picture</source>
        <translation>图片</translation>
    </message>
    <message>
        <source>Cannot be read now</source>
        <translation>暂时无法读取</translation>
    </message>
    <message>
        <source>Attached resource: {0}</source>
        <translation>附加的资源：{0}</translation>
    </message>
    <message>
        <source>Preparing…</source>
        <translation>正在准备…</translation>
    </message>
    <message>
        <source>Reading…</source>
        <translation>正在读取…</translation>
    </message>
    <message>
        <source>Pasted text, {0}</source>
        <translation>粘贴的文本，{0}</translation>
    </message>
    <message>
        <source>Sent after the message</source>
        <translation>在消息之后发送</translation>
    </message>
    <message>
        <source>Attached file: {0}</source>
        <translation>已附加的文件：{0}</translation>
    </message>
    <message>
        <source>{0} · from {1}</source>
        <translation>{0} · 来自 {1}</translation>
    </message>
    <message>
        <source>{0} · about {1} tokens</source>
        <translation>{0} · 约 {1} 个 token</translation>
    </message>
    <message>
        <source>Attached image: {0}</source>
        <translation>附加的图片：{0}</translation>
    </message>
</context>
<context>
    <name>AuditLogSettings</name>
    <message>
        <source>No tool has been called yet.</source>
        <translation>尚未调用任何工具。</translation>
    </message>
    <message>
        <source>Decisions</source>
        <translation>决定</translation>
    </message>
    <message>
        <source>Details of the decision</source>
        <translation>决定的详细信息</translation>
    </message>
    <message>
        <source>Show older</source>
        <translation>显示更早的</translation>
    </message>
    <message>
        <source>Export…</source>
        <translation>导出…</translation>
    </message>
    <message>
        <source>Every tool call that a model asked for: who decided, and how it ended.</source>
        <translation>模型请求过的每个工具调用：由谁决定，结果如何。</translation>
    </message>
    <message>
        <source>Allowed by you</source>
        <translation>由您允许</translation>
    </message>
    <message>
        <source>Allowed by a rule</source>
        <translation>由规则允许</translation>
    </message>
    <message>
        <source>Allowed by the mode</source>
        <translation>由模式允许</translation>
    </message>
    <message>
        <source>Allowed without asking: it only reads</source>
        <translation>未询问即允许：只读取</translation>
    </message>
    <message>
        <source>Denied by you</source>
        <translation>由您拒绝</translation>
    </message>
    <message>
        <source>Denied by a rule</source>
        <translation>由规则拒绝</translation>
    </message>
    <message>
        <source>Denied without asking</source>
        <translation>未询问即拒绝</translation>
    </message>
    <message>
        <source>Stopped before it was started</source>
        <translation>启动前已停止</translation>
    </message>
    <message>
        <source>Not decided</source>
        <translation>未决定</translation>
    </message>
    <message>
        <source>done</source>
        <translation>已完成</translation>
    </message>
    <message>
        <source>failed</source>
        <translation>失败</translation>
    </message>
    <message>
        <source>denied</source>
        <translation>已拒绝</translation>
    </message>
    <message>
        <source>took too long</source>
        <translation>耗时过长</translation>
    </message>
    <message>
        <source>stopped</source>
        <translation>已停止</translation>
    </message>
    <message>
        <source>stopped at a limit</source>
        <translation>达到上限而停止</translation>
    </message>
    <message>
        <source>outcome unknown</source>
        <translation>结果未知</translation>
    </message>
    <message>
        <source>You edited the arguments.</source>
        <translation>您编辑了参数。</translation>
    </message>
</context>
<context>
    <name>BannerArea</name>
    <message>
        <source>Messages of the program</source>
        <translation>程序消息</translation>
    </message>
    <message>
        <source>Copy details</source>
        <translation>复制详细信息</translation>
    </message>
    <message>
        <source>Undo</source>
        <translation>撤销</translation>
    </message>
</context>
<context>
    <name>BannerFrame</name>
    <message>
        <source>Close this message</source>
        <translation>关闭此消息</translation>
    </message>
</context>
<context>
    <name>BranchDialog</name>
    <message>
        <source>The dot marks the end of the branch you see. Expand a message to see its other versions, in grey.</source>
        <translation>圆点标记当前分支的末尾。展开消息可查看其他版本（灰色）。</translation>
    </message>
    <message>
        <source>Show</source>
        <translation>显示</translation>
    </message>
    <message>
        <source>Branch from here</source>
        <translation>从这里分支</translation>
    </message>
    <message>
        <source>Delete…</source>
        <translation>删除…</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>关闭</translation>
    </message>
    <message>
        <source>Branches</source>
        <translation>分支</translation>
    </message>
    <message>
        <source>Menu: {0}</source>
        <translation>菜单：{0}</translation>
    </message>
    <message>
        <source>Message</source>
        <translation>消息</translation>
    </message>
</context>
<context>
    <name>BranchModel</name>
    <message>
        <source>You</source>
        <translation>您</translation>
    </message>
    <message>
        <source>Assistant</source>
        <translation>助手</translation>
    </message>
    <message>
        <source>Note</source>
        <translation>提示</translation>
    </message>
    <message>
        <source>(a picture)</source>
        <translation>（图片）</translation>
    </message>
    <message>
        <source>(no text)</source>
        <translation>（无文本）</translation>
    </message>
    <message>
        <source>{0} tool calls</source>
        <translation>{0} 个工具调用</translation>
    </message>
    <message>
        <source>1 tool call</source>
        <translation>1 个工具调用</translation>
    </message>
    <message>
        <source>{0} other versions</source>
        <translation>{0} 个其他版本</translation>
    </message>
    <message>
        <source>1 other version</source>
        <translation>1 个其他版本</translation>
    </message>
    <message>
        <source>{0} messages below</source>
        <translation>下面有 {0} 条消息</translation>
    </message>
    <message>
        <source>1 below</source>
        <translation>下面有 1 条</translation>
    </message>
    <message>
        <source>end of the shown branch</source>
        <translation>当前分支的末尾</translation>
    </message>
    <message>
        <source>shown</source>
        <translation>当前显示</translation>
    </message>
</context>
<context>
    <name>BranchTreeView</name>
    <message>
        <source>Branches of this conversation</source>
        <translation>此对话的分支</translation>
    </message>
</context>
<context>
    <name>BranchesPresenter</name>
    <message>
        <source>Version {0} of {1}</source>
        <translation>版本 {0}/{1}</translation>
    </message>
    <message>
        <source>Undo what the other version changed</source>
        <translation>撤销另一个版本所做的更改</translation>
    </message>
    <message>
        <source>Undo file changes too…</source>
        <translation>同时撤销文件更改…</translation>
    </message>
    <message>
        <source>With another model</source>
        <translation>使用其他模型</translation>
    </message>
    <message>
        <source>With another reasoning level</source>
        <translation>使用其他推理级别</translation>
    </message>
    <message>
        <source>Another model…</source>
        <translation>其他模型…</translation>
    </message>
</context>
<context>
    <name>BudgetBanners</name>
    <message>
        <source>Usage and budgets</source>
        <translation>用量和预算</translation>
    </message>
    <message>
        <source>A budget is used up. {0}: {1}.</source>
        <translation>预算已用完。{0}：{1}。</translation>
    </message>
    <message>
        <source>A budget is nearly used up. {0}: {1}.</source>
        <translation>预算即将用完。{0}：{1}。</translation>
    </message>
</context>
<context>
    <name>CallHeader</name>
    <message>
        <source>The agent {0} asks to use</source>
        <translation>智能体 {0} 请求使用</translation>
    </message>
    <message>
        <source>The assistant asks to use</source>
        <translation>助手请求使用</translation>
    </message>
    <message>
        <source>In the folder {0}</source>
        <translation>在文件夹 {0} 中</translation>
    </message>
    <message>
        <source>This call can be undone.</source>
        <translation>此调用可以撤销。</translation>
    </message>
    <message>
        <source>This call cannot be undone.</source>
        <translation>此调用无法撤销。</translation>
    </message>
</context>
<context>
    <name>CallNotifier</name>
    <message>
        <source>Show</source>
        <translation>显示</translation>
    </message>
    <message>
        <source>Deny</source>
        <translation>拒绝</translation>
    </message>
    <message>
        <source>Allow once</source>
        <translation>允许一次</translation>
    </message>
    <message>
        <source>A conversation that is not stored</source>
        <translation>一个不保存的对话</translation>
    </message>
    <message>
        <source>A call waits for your approval.</source>
        <translation>有调用正在等待您的批准。</translation>
    </message>
    <message>
        <source>The agent {0} asks for your approval:</source>
        <translation>智能体 {0} 请求您批准：</translation>
    </message>
    <message>
        <source>A call waits for your approval:</source>
        <translation>有调用正在等待您的批准：</translation>
    </message>
</context>
<context>
    <name>Cards</name>
    <message>
        <source>Save or cancel your changes first</source>
        <translation>请先保存或取消您的更改</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>取消</translation>
    </message>
    <message>
        <source>Save</source>
        <translation>保存</translation>
    </message>
    <message>
        <source>This cannot be saved yet. Check each field.</source>
        <translation>尚无法保存。请检查各个字段。</translation>
    </message>
    <message>
        <source>Undo</source>
        <translation>撤销</translation>
    </message>
</context>
<context>
    <name>ClearableField</name>
    <message>
        <source>Clear</source>
        <translation>清除</translation>
    </message>
</context>
<context>
    <name>CloseConfirmation</name>
    <message>
        <source>Close Desktop Agent?</source>
        <translation>关闭 Desktop Agent？</translation>
    </message>
    <message>
        <source>Not everything could be saved.</source>
        <translation>未能保存全部内容。</translation>
    </message>
    <message>
        <source>If you quit now, unsaved changes are lost.</source>
        <translation>如果现在退出，未保存的内容将会丢失。</translation>
    </message>
    <message>
        <source>Keep open</source>
        <translation>保持打开</translation>
    </message>
    <message>
        <source>Quit without saving</source>
        <translation>不保存并退出</translation>
    </message>
    <message>
        <source>Try again</source>
        <translation>重试</translation>
    </message>
    <message>
        <source>Save elsewhere…</source>
        <translation>保存到别处…</translation>
    </message>
    <message>
        <source>Save unsaved conversations</source>
        <translation>保存未保存的对话</translation>
    </message>
    <message>
        <source>Unsaved conversations {0}.md</source>
        <translation>未保存的对话 {0}.md</translation>
    </message>
</context>
<context>
    <name>CloudRow</name>
    <message>
        <source>API key for {0}</source>
        <translation>{0} 的 API 密钥</translation>
    </message>
    <message>
        <source>Paste your API key</source>
        <translation>粘贴您的 API 密钥</translation>
    </message>
    <message>
        <source>Connect</source>
        <translation>连接</translation>
    </message>
    <message>
        <source>Connect {0}</source>
        <translation>连接 {0}</translation>
    </message>
    <message>
        <source>Get a key for {0}</source>
        <translation>获取 {0} 的密钥</translation>
    </message>
    <message>
        <source>Get a key</source>
        <translation>获取密钥</translation>
    </message>
</context>
<context>
    <name>CommandPalette</name>
    <message>
        <source>Nothing found.</source>
        <translation>未找到任何内容。</translation>
    </message>
    <message>
        <source>Commands</source>
        <translation>命令</translation>
    </message>
    <message>
        <source>Commands, settings, conversations, messages</source>
        <translation>命令、设置、对话、消息</translation>
    </message>
</context>
<context>
    <name>CommandView</name>
    <message>
        <source>Command line</source>
        <translation>命令行</translation>
    </message>
    <message>
        <source>What will run: {0} commands</source>
        <translation>将要运行：{0} 个命令</translation>
    </message>
    <message>
        <source>What will run</source>
        <translation>将要运行</translation>
    </message>
    <message>
        <source>“{0}”: the character “{1}” ({2}) only looks like “{3}”.</source>
        <translation>“{0}”：字符“{1}”（{2}）只是看起来像“{3}”。</translation>
    </message>
    <message>
        <source>The shell cannot read this line: {0}</source>
        <translation>Shell 无法解析这一行：{0}</translation>
    </message>
    <message>
        <source>This line may run more than is listed here. Read all of it.</source>
        <translation>此行可能会运行比这里列出的更多的内容。请完整阅读。</translation>
    </message>
    <message>
        <source>In the folder {0}</source>
        <translation>在文件夹 {0} 中</translation>
    </message>
    <message>
        <source>And {0} more</source>
        <translation>以及另外 {0} 个</translation>
    </message>
    <message>
        <source>Deletes</source>
        <translation>删除</translation>
    </message>
    <message>
        <source>Writes files</source>
        <translation>写入文件</translation>
    </message>
    <message>
        <source>Uses the network</source>
        <translation>使用网络</translation>
    </message>
    <message>
        <source>Needs privileges</source>
        <translation>需要特权</translation>
    </message>
    <message>
        <source>Runs code</source>
        <translation>运行代码</translation>
    </message>
    <message>
        <source>Depends on variables</source>
        <translation>取决于变量</translation>
    </message>
    <message>
        <source>Look-alike characters</source>
        <translation>含有易混淆的字符</translation>
    </message>
    <message>
        <source>Commands of the line</source>
        <translation>此行中的命令</translation>
    </message>
</context>
<context>
    <name>Composer</name>
    <message>
        <source>Attach files</source>
        <translation>附加文件</translation>
    </message>
    <message>
        <source>Your message is sent when the attachments are ready. Press Esc to cancel.</source>
        <translation>附件准备好后会发送您的消息。按 Esc 取消。</translation>
    </message>
</context>
<context>
    <name>ContextOverflowNotice</name>
    <message>
        <source>Summarise older messages</source>
        <translation>总结较早的消息</translation>
    </message>
    <message>
        <source>Choose another model</source>
        <translation>选择其他模型</translation>
    </message>
    <message>
        <source>Summarise</source>
        <translation>总结</translation>
    </message>
    <message>
        <source>Another model</source>
        <translation>其他模型</translation>
    </message>
    <message>
        <source>About {0} tokens over the model&apos;s limit of {1}. Shorten your message, or:</source>
        <translation>超出模型上限 {1} 约 {0} 个 token。请缩短消息，或者：</translation>
    </message>
</context>
<context>
    <name>Conversation</name>
    <message>
        <source>New conversation</source>
        <translation>新对话</translation>
    </message>
</context>
<context>
    <name>ConversationList</name>
    <message>
        <source>New conversation</source>
        <translation>新对话</translation>
    </message>
    <message>
        <source>Search</source>
        <translation>搜索</translation>
    </message>
    <message>
        <source>New conversation that is not stored</source>
        <translation>新建不保存的对话</translation>
    </message>
    <message>
        <source>Search conversations</source>
        <translation>搜索对话</translation>
    </message>
</context>
<context>
    <name>ConversationMenu</name>
    <message>
        <source>Rename…</source>
        <translation>重命名…</translation>
    </message>
    <message>
        <source>Open in new window</source>
        <translation>在新窗口中打开</translation>
    </message>
    <message>
        <source>Branches…</source>
        <translation>分支…</translation>
    </message>
    <message>
        <source>Conversations: {0}</source>
        <translation>对话：{0}</translation>
    </message>
    <message>
        <source>Bring back from the archive</source>
        <translation>移出归档</translation>
    </message>
    <message>
        <source>Unpin</source>
        <translation>取消置顶</translation>
    </message>
    <message>
        <source>Pin</source>
        <translation>置顶</translation>
    </message>
    <message>
        <source>Move to a folder…</source>
        <translation>移到文件夹…</translation>
    </message>
    <message>
        <source>Tags…</source>
        <translation>标签…</translation>
    </message>
    <message>
        <source>Archive</source>
        <translation>归档</translation>
    </message>
    <message>
        <source>Duplicate</source>
        <translation>复制为新对话</translation>
    </message>
    <message>
        <source>Merge into one</source>
        <translation>合并为一个</translation>
    </message>
    <message>
        <source>Export…</source>
        <translation>导出…</translation>
    </message>
    <message>
        <source>Copy link</source>
        <translation>复制链接</translation>
    </message>
    <message>
        <source>Deselect</source>
        <translation>取消选择</translation>
    </message>
    <message>
        <source>Select several</source>
        <translation>选择多个</translation>
    </message>
    <message>
        <source>Delete</source>
        <translation>删除</translation>
    </message>
</context>
<context>
    <name>ConversationModel</name>
    <message>
        <source>Folder: {0}</source>
        <translation>文件夹：{0}</translation>
    </message>
    <message>
        <source>pinned</source>
        <translation>已置顶</translation>
    </message>
    <message>
        <source>tags: {0}</source>
        <translation>标签：{0}</translation>
    </message>
    <message>
        <source>working</source>
        <translation>工作中</translation>
    </message>
    <message>
        <source>waits for you</source>
        <translation>等待您处理</translation>
    </message>
    <message>
        <source>unread</source>
        <translation>未读</translation>
    </message>
</context>
<context>
    <name>ConversationPage</name>
    <message>
        <source>Continue.</source>
        <translation>请继续。</translation>
    </message>
    <message>
        <source>Open settings</source>
        <translation>打开设置</translation>
    </message>
    <message>
        <source>Choose model</source>
        <translation>选择模型</translation>
    </message>
</context>
<context>
    <name>ConversationSettingsDialog</name>
    <message>
        <source>No system prompt</source>
        <translation>无系统提示词</translation>
    </message>
    <message>
        <source>The instructions of its folders are added: {0}</source>
        <translation>会附加其所在文件夹的指令：{0}</translation>
    </message>
    <message>
        <source>Save</source>
        <translation>保存</translation>
    </message>
    <message>
        <source>Use defaults</source>
        <translation>使用默认值</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>取消</translation>
    </message>
    <message>
        <source>These settings apply to this conversation, from the next message on.</source>
        <translation>这些设置从下一条消息起对此对话有效。</translation>
    </message>
    <message>
        <source>Conversation settings</source>
        <translation>对话设置</translation>
    </message>
</context>
<context>
    <name>ConversationView</name>
    <message>
        <source>All folders ({0})</source>
        <translation>所有文件夹（{0}）</translation>
    </message>
    <message>
        <source>Archive</source>
        <translation>归档</translation>
    </message>
    <message>
        <source>Conversations</source>
        <translation>对话</translation>
    </message>
    <message>
        <source>Folder</source>
        <translation>文件夹</translation>
    </message>
    <message>
        <source>Conversation</source>
        <translation>对话</translation>
    </message>
    <message>
        <source>Menu: {0}</source>
        <translation>菜单：{0}</translation>
    </message>
</context>
<context>
    <name>ConversationWindow</name>
    <message>
        <source>Open in the main window</source>
        <translation>在主窗口中打开</translation>
    </message>
</context>
<context>
    <name>CrashPresenter</name>
    <message>
        <source>Show report</source>
        <translation>显示报告</translation>
    </message>
</context>
<context>
    <name>CrashReportDialog</name>
    <message>
        <source>This report lists versions and the parts of the program that were running. It contains nothing that you or a model wrote, and it is not sent anywhere: copy it when you report the crash. It stays in this file until the next crash:</source>
        <translation>报告列出版本以及当时正在运行的程序部分。其中不包含您或模型所写的任何内容，也不会发送到任何地方：请在报告崩溃时复制它。下次崩溃之前，它会保留在此文件中：</translation>
    </message>
    <message>
        <source>Copy</source>
        <translation>复制</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>关闭</translation>
    </message>
    <message>
        <source>Report</source>
        <translation>报告</translation>
    </message>
    <message>
        <source>Crash report</source>
        <translation>崩溃报告</translation>
    </message>
    <message>
        <source>Copied</source>
        <translation>已复制</translation>
    </message>
</context>
<context>
    <name>CustomRow</name>
    <message>
        <source>Address of the server</source>
        <translation>服务器地址</translation>
    </message>
    <message>
        <source>API key, if the server needs one</source>
        <translation>API 密钥（如果服务器需要）</translation>
    </message>
    <message>
        <source>API key, if needed</source>
        <translation>API 密钥（如果需要）</translation>
    </message>
    <message>
        <source>Connect</source>
        <translation>连接</translation>
    </message>
    <message>
        <source>Connect this address</source>
        <translation>连接此地址</translation>
    </message>
    <message>
        <source>Further addresses…</source>
        <translation>更多地址…</translation>
    </message>
    <message>
        <source>API</source>
        <translation>协议</translation>
    </message>
    <message>
        <source>“{0}” is not a web address. It begins with https:// or http://.</source>
        <translation>“{0}”不是网址。网址以 https:// 或 http:// 开头。</translation>
    </message>
</context>
<context>
    <name>DateGroups</name>
    <message>
        <source>Pinned</source>
        <translation>已置顶</translation>
    </message>
    <message>
        <source>Today</source>
        <translation>今天</translation>
    </message>
    <message>
        <source>Yesterday</source>
        <translation>昨天</translation>
    </message>
    <message>
        <source>Previous 7 days</source>
        <translation>过去 7 天</translation>
    </message>
    <message>
        <source>Previous 30 days</source>
        <translation>过去 30 天</translation>
    </message>
    <message>
        <source>MMMM yyyy</source>
        <comment>a month and its year, as QLocale writes dates</comment>
        <translation>yyyy年M月</translation>
    </message>
</context>
<context>
    <name>DecisionBar</name>
    <message>
        <source>Message to the model</source>
        <translation>给模型的消息</translation>
    </message>
    <message>
        <source>Allow once</source>
        <translation>允许一次</translation>
    </message>
    <message>
        <source>Allow for this conversation</source>
        <translation>在此对话中允许</translation>
    </message>
    <message>
        <source>Always allow…</source>
        <translation>始终允许…</translation>
    </message>
    <message>
        <source>Edit arguments</source>
        <translation>编辑参数</translation>
    </message>
    <message>
        <source>Deny</source>
        <translation>拒绝</translation>
    </message>
    <message>
        <source>Deny and stop</source>
        <translation>拒绝并停止</translation>
    </message>
    <message>
        <source>Also for the other call of “{1}”</source>
        <translation>也用于“{1}”的另一次调用</translation>
    </message>
    <message>
        <source>Also for the other {0} calls of “{1}”</source>
        <translation>也用于“{1}”的其他 {0} 次调用</translation>
    </message>
    <message>
        <source>Discard edits</source>
        <translation>放弃编辑</translation>
    </message>
    <message>
        <source>Allow both calls once</source>
        <translation>两个调用都允许一次</translation>
    </message>
    <message>
        <source>Allow these {0} calls once</source>
        <translation>这 {0} 个调用都允许一次</translation>
    </message>
</context>
<context>
    <name>DeletionPresenter</name>
    <message>
        <source>Delete message</source>
        <translation>删除消息</translation>
    </message>
    <message>
        <source>Keep</source>
        <translation>保留</translation>
    </message>
    <message>
        <source>Undo file changes first…</source>
        <translation>先撤销文件更改…</translation>
    </message>
    <message>
        <source>Delete for good</source>
        <translation>永久删除</translation>
    </message>
    <message>
        <source>Undo what these messages changed</source>
        <translation>撤销这些消息所做的更改</translation>
    </message>
    <message>
        <source>Deleted.</source>
        <translation>已删除。</translation>
    </message>
</context>
<context>
    <name>DialectBox</name>
    <message>
        <source>API of the server</source>
        <translation>服务器使用的协议</translation>
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
        <translation>把它们也删除</translation>
    </message>
    <message>
        <source>These folders are gone</source>
        <translation>这些文件夹已不存在</translation>
    </message>
</context>
<context>
    <name>ElicitationForm</name>
    <message>
        <source>Message from the server</source>
        <translation>来自服务器的消息</translation>
    </message>
    <message>
        <source>The form, as “{0}” wrote it (not verified):</source>
        <translation>“{0}”撰写的表单（未经核实）：</translation>
    </message>
    <message>
        <source>The form is broken or has too many fields to be shown. It can only be declined.</source>
        <translation>此表单有误或字段过多，无法显示。只能拒绝。</translation>
    </message>
    <message>
        <source>Please correct: {0}</source>
        <translation>请更正：{0}</translation>
    </message>
    <message>
        <source>Please fill in: {0}</source>
        <translation>请填写：{0}</translation>
    </message>
    <message>
        <source>This looks like a password or a key. Servers may not ask for one in a form: “{0}” gets it just as you typed it.</source>
        <translation>这看起来像密码或密钥。服务器不得在表单中索取此类信息：这里的内容会原样发送给“{0}”。</translation>
    </message>
</context>
<context>
    <name>EndpointCard</name>
    <message>
        <source>API key for {0}</source>
        <translation>{0} 的 API 密钥</translation>
    </message>
    <message>
        <source>Paste a new API key</source>
        <translation>粘贴新的 API 密钥</translation>
    </message>
    <message>
        <source>Change key</source>
        <translation>更改密钥</translation>
    </message>
    <message>
        <source>Change key of {0}</source>
        <translation>更改 {0} 的密钥</translation>
    </message>
    <message>
        <source>Edit</source>
        <translation>编辑</translation>
    </message>
    <message>
        <source>Edit {0}</source>
        <translation>编辑 {0}</translation>
    </message>
    <message>
        <source>Test</source>
        <translation>测试</translation>
    </message>
    <message>
        <source>Test {0}</source>
        <translation>测试 {0}</translation>
    </message>
    <message>
        <source>Key set</source>
        <translation>已有密钥</translation>
    </message>
    <message>
        <source>No key</source>
        <translation>无密钥</translation>
    </message>
    <message>
        <source>Add key</source>
        <translation>添加密钥</translation>
    </message>
    <message>
        <source>Remove “{0}” and its key? Conversations stay.</source>
        <translation>移除“{0}”及其密钥？对话会保留。</translation>
    </message>
    <message>
        <source>Remove “{0}”? Conversations stay.</source>
        <translation>移除“{0}”？对话会保留。</translation>
    </message>
    <message>
        <source>The key was for another address and is removed. Enter the key for this one.</source>
        <translation>该密钥属于另一个地址，已被移除。请输入此地址的密钥。</translation>
    </message>
    <message>
        <source>Remove the key of “{0}”? To use it again, enter the key anew.</source>
        <translation>移除“{0}”的密钥？若要再次使用，请重新输入密钥。</translation>
    </message>
    <message>
        <source>Remove key</source>
        <translation>移除密钥</translation>
    </message>
    <message>
        <source>Remove key of {0}</source>
        <translation>移除 {0} 的密钥</translation>
    </message>
    <message>
        <source>Keep</source>
        <translation>保留</translation>
    </message>
    <message>
        <source>Keep the key of {0}</source>
        <translation>保留 {0} 的密钥</translation>
    </message>
    <message>
        <source>Really remove the key of {0}</source>
        <translation>确认移除 {0} 的密钥</translation>
    </message>
    <message>
        <source>Remove server</source>
        <translation>移除服务器</translation>
    </message>
    <message>
        <source>Remove server {0}</source>
        <translation>移除服务器 {0}</translation>
    </message>
    <message>
        <source>Keep server {0}</source>
        <translation>保留服务器 {0}</translation>
    </message>
    <message>
        <source>Really remove server {0}</source>
        <translation>确认移除服务器 {0}</translation>
    </message>
    <message>
        <source>1 further address</source>
        <translation>另有 1 个地址</translation>
    </message>
    <message>
        <source>{0} further addresses</source>
        <translation>另有 {0} 个地址</translation>
    </message>
</context>
<context>
    <name>EndpointEditor</name>
    <message>
        <source>Cancel editing {0}</source>
        <translation>取消编辑 {0}</translation>
    </message>
    <message>
        <source>Save {0}</source>
        <translation>保存 {0}</translation>
    </message>
    <message>
        <source>The key belongs to {0} and is not sent to other addresses. Saving removes the key; then enter it again.</source>
        <translation>该密钥属于 {0}，不会发送到其他地址。保存时会移除密钥；之后请重新输入。</translation>
    </message>
    <message>
        <source>“{0}” is not a web address. It begins with https:// or http://.</source>
        <translation>“{0}”不是网址。网址以 https:// 或 http:// 开头。</translation>
    </message>
    <message>
        <source>Title</source>
        <translation>标题</translation>
    </message>
    <message>
        <source>Title of {0}</source>
        <translation>{0} 的标题</translation>
    </message>
    <message>
        <source>Address of {0}</source>
        <translation>{0} 的地址</translation>
    </message>
    <message>
        <source>Address</source>
        <translation>地址</translation>
    </message>
    <message>
        <source>API</source>
        <translation>协议</translation>
    </message>
    <message>
        <source>API of {0}</source>
        <translation>{0} 使用的协议</translation>
    </message>
    <message>
        <source>Models of {0}, if it lists none</source>
        <translation>{0} 的模型（如果它不列出模型）</translation>
    </message>
    <message>
        <source>Models</source>
        <translation>模型</translation>
    </message>
    <message>
        <source>Further addresses of {0}</source>
        <translation>{0} 的更多地址</translation>
    </message>
</context>
<context>
    <name>ExchangePresenter</name>
    <message>
        <source>Conversation</source>
        <translation>对话</translation>
    </message>
    <message>
        <source>Conversations</source>
        <translation>对话</translation>
    </message>
    <message>
        <source>Web page (*.html)</source>
        <translation>网页 (*.html)</translation>
    </message>
    <message>
        <source>PDF, for printing (*.pdf)</source>
        <translation>PDF，用于打印 (*.pdf)</translation>
    </message>
    <message>
        <source>Markdown (*.md)</source>
        <translation>Markdown (*.md)</translation>
    </message>
    <message>
        <source>Web pages in a folder (*)</source>
        <translation>文件夹中的网页 (*)</translation>
    </message>
    <message>
        <source>PDF files in a folder (*)</source>
        <translation>文件夹中的 PDF 文件 (*)</translation>
    </message>
    <message>
        <source>Markdown in a folder (*)</source>
        <translation>文件夹中的 Markdown (*)</translation>
    </message>
    <message>
        <source>Archive with pictures, to be imported again (*.zip)</source>
        <translation>含图片的压缩包，可重新导入 (*.zip)</translation>
    </message>
    <message>
        <source>JSON, to be imported again (*.json)</source>
        <translation>JSON，可重新导入 (*.json)</translation>
    </message>
    <message>
        <source>Import conversations</source>
        <translation>导入对话</translation>
    </message>
    <message>
        <source>Exports (*.zip *.json)</source>
        <translation>导出文件 (*.zip *.json)</translation>
    </message>
    <message>
        <source>All files (*)</source>
        <translation>所有文件 (*)</translation>
    </message>
    <message>
        <source>Export</source>
        <translation>导出</translation>
    </message>
    <message>
        <source>Stop</source>
        <translation>停止</translation>
    </message>
    <message>
        <source>Open folder</source>
        <translation>打开文件夹</translation>
    </message>
    <message>
        <source>Details…</source>
        <translation>详细信息…</translation>
    </message>
    <message>
        <source>{0} ({1} times)</source>
        <translation>{0}（{1} 次）</translation>
    </message>
    <message>
        <source>And {0} more.</source>
        <translation>以及另外 {0} 个。</translation>
    </message>
    <message>
        <source>Import</source>
        <translation>导入</translation>
    </message>
    <message>
        <source>What was not imported, or only in part</source>
        <translation>未导入或仅部分导入的内容</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>关闭</translation>
    </message>
    <message>
        <source>Copy report</source>
        <translation>复制报告</translation>
    </message>
</context>
<context>
    <name>ExpandableNote</name>
    <message>
        <source>Show all</source>
        <translation>显示全部</translation>
    </message>
    <message>
        <source>Show less</source>
        <translation>收起</translation>
    </message>
</context>
<context>
    <name>FieldRow</name>
    <message>
        <source>“{0}”</source>
        <translation>“{0}”</translation>
    </message>
    <message>
        <source>The server asks for something here that this form cannot show.</source>
        <translation>服务器在这里要求此表单无法显示的内容。</translation>
    </message>
    <message>
        <source>Choose…</source>
        <translation>选择…</translation>
    </message>
    <message>
        <source>Nothing chosen</source>
        <translation>未选择</translation>
    </message>
    <message>
        <source>Optional.</source>
        <translation>可选。</translation>
    </message>
    <message>
        <source>{0} (optional)</source>
        <translation>{0}（可选）</translation>
    </message>
</context>
<context>
    <name>FileDrops</name>
    <message>
        <source>Drop to attach</source>
        <translation>松开即可添加附件</translation>
    </message>
</context>
<context>
    <name>FileSaver</name>
    <message>
        <source>Save as</source>
        <translation>另存为</translation>
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
        <translation>区分大小写</translation>
    </message>
    <message>
        <source>|ab|</source>
        <translation>|ab|</translation>
    </message>
    <message>
        <source>Whole words</source>
        <translation>全字匹配</translation>
    </message>
    <message>
        <source>Previous match</source>
        <translation>上一个匹配项</translation>
    </message>
    <message>
        <source>Next match</source>
        <translation>下一个匹配项</translation>
    </message>
    <message>
        <source>Close find bar</source>
        <translation>关闭查找栏</translation>
    </message>
    <message>
        <source>Find in conversation</source>
        <translation>在对话中查找</translation>
    </message>
    <message>
        <source>{0} so far</source>
        <translation>目前 {0} 个</translation>
    </message>
    <message>
        <source>{0} of {1}</source>
        <translation>{0}/{1}</translation>
    </message>
    <message>
        <source>No matches</source>
        <translation>没有匹配项</translation>
    </message>
</context>
<context>
    <name>FolderDialog</name>
    <message>
        <source>Name of the folder</source>
        <translation>文件夹名称</translation>
    </message>
    <message>
        <source>Name</source>
        <translation>名称</translation>
    </message>
    <message>
        <source>Name, colour and instructions</source>
        <translation>名称、颜色和指令</translation>
    </message>
    <message>
        <source>New folder</source>
        <translation>新建文件夹</translation>
    </message>
    <message>
        <source>Save</source>
        <translation>保存</translation>
    </message>
    <message>
        <source>Create</source>
        <translation>创建</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>取消</translation>
    </message>
    <message>
        <source>Instructions for every conversation in this folder</source>
        <translation>适用于此文件夹中所有对话的指令</translation>
    </message>
    <message>
        <source>The instructions have more than {0} characters. Shorten them.</source>
        <translation>指令超过了 {0} 个字符。请缩短。</translation>
    </message>
    <message>
        <source>Grey</source>
        <translation>灰色</translation>
    </message>
    <message>
        <source>Red</source>
        <translation>红色</translation>
    </message>
    <message>
        <source>Orange</source>
        <translation>橙色</translation>
    </message>
    <message>
        <source>Yellow</source>
        <translation>黄色</translation>
    </message>
    <message>
        <source>Green</source>
        <translation>绿色</translation>
    </message>
    <message>
        <source>Teal</source>
        <translation>青色</translation>
    </message>
    <message>
        <source>Blue</source>
        <translation>蓝色</translation>
    </message>
    <message>
        <source>Purple</source>
        <translation>紫色</translation>
    </message>
</context>
<context>
    <name>FolderHeader</name>
    <message>
        <source>Menu: {0}</source>
        <translation>菜单：{0}</translation>
    </message>
    <message>
        <source>Folder</source>
        <translation>文件夹</translation>
    </message>
    <message>
        <source>Archive</source>
        <translation>归档</translation>
    </message>
    <message>
        <source>All conversations</source>
        <translation>所有对话</translation>
    </message>
    <message>
        <source>{0}. Go up to: {1}</source>
        <translation>{0}。返回上一级：{1}</translation>
    </message>
    <message>
        <source>{0}
Go up to: {1}</source>
        <translation>{0}
返回上一级：{1}</translation>
    </message>
</context>
<context>
    <name>FolderMenu</name>
    <message>
        <source>Name, colour and instructions…</source>
        <translation>名称、颜色和指令…</translation>
    </message>
    <message>
        <source>New folder in it…</source>
        <translation>在其中新建文件夹…</translation>
    </message>
    <message>
        <source>Move to a folder…</source>
        <translation>移到文件夹…</translation>
    </message>
    <message>
        <source>Delete folder…</source>
        <translation>删除文件夹…</translation>
    </message>
    <message>
        <source>New folder…</source>
        <translation>新建文件夹…</translation>
    </message>
</context>
<context>
    <name>FolderPicker</name>
    <message>
        <source>Move to a folder</source>
        <translation>移到文件夹</translation>
    </message>
    <message>
        <source>Find a folder, or name a new one</source>
        <translation>查找文件夹，或输入新名称</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>取消</translation>
    </message>
    <message>
        <source>No folder</source>
        <translation>无文件夹</translation>
    </message>
    <message>
        <source>New folder “{0}”</source>
        <translation>新文件夹“{0}”</translation>
    </message>
</context>
<context>
    <name>Form</name>
    <message>
        <source>This cannot be filled in here.</source>
        <translation>此处无法填写。</translation>
    </message>
    <message>
        <source>An answer is needed here.</source>
        <translation>此处需要回答。</translation>
    </message>
    <message>
        <source>Choose at least {0} of these.</source>
        <translation>请至少选择其中 {0} 项。</translation>
    </message>
    <message>
        <source>Choose at most {0} of these.</source>
        <translation>请最多选择其中 {0} 项。</translation>
    </message>
    <message>
        <source>This must be a whole number, such as 12.</source>
        <translation>必须是整数，例如 12。</translation>
    </message>
    <message>
        <source>This must be a number, such as 12 or 1.5.</source>
        <translation>必须是数字，例如 12 或 1.5。</translation>
    </message>
    <message>
        <source>This must be {0} or more.</source>
        <translation>必须不小于 {0}。</translation>
    </message>
    <message>
        <source>This must be {0} or less.</source>
        <translation>必须不大于 {0}。</translation>
    </message>
    <message>
        <source>This must have at least {0} characters; it has {1}.</source>
        <translation>至少需要 {0} 个字符，现有 {1} 个。</translation>
    </message>
    <message>
        <source>This may have at most {0} characters; it has {1}.</source>
        <translation>最多 {0} 个字符，现有 {1} 个。</translation>
    </message>
    <message>
        <source>This must be an e-mail address, such as ada@example.org.</source>
        <translation>必须是电子邮件地址，例如 ada@example.org。</translation>
    </message>
    <message>
        <source>This must be an address, such as https://example.org.</source>
        <translation>必须是网址，例如 https://example.org。</translation>
    </message>
    <message>
        <source>This must be a date, such as 2026-03-31.</source>
        <translation>必须是日期，例如 2026-03-31。</translation>
    </message>
    <message>
        <source>This must be a date with a time, such as 2026-03-31T14:30:00Z.</source>
        <translation>必须是日期和时间，例如 2026-03-31T14:30:00Z。</translation>
    </message>
</context>
<context>
    <name>FoundHistories</name>
    <message>
        <source>{0}, conversations: {1}</source>
        <translation>{0}，对话：{1}</translation>
    </message>
    <message>
        <source>Conversations: {0}</source>
        <translation>对话：{0}</translation>
    </message>
</context>
<context>
    <name>FoundHistoriesDialog</name>
    <message>
        <source>Import</source>
        <translation>导入</translation>
    </message>
    <message>
        <source>These programs have conversations on this computer. They are copied, with their tool calls, and can be searched and continued here with any model. The programs&apos; own files are only read.</source>
        <translation>这些程序在此计算机上存有对话。对话会连同工具调用一起复制，可在这里搜索，并使用任意模型继续。程序自己的文件只会被读取。</translation>
    </message>
    <message>
        <source>No conversations of other assistants were found on this computer.</source>
        <translation>在此计算机上未找到其他助手的对话。</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>取消</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>关闭</translation>
    </message>
    <message>
        <source>Import from other assistants</source>
        <translation>从其他助手导入</translation>
    </message>
</context>
<context>
    <name>FoundHistorySettings</name>
    <message>
        <source>Conversations of these programs are shown below your own, are found by the search, and can be continued here with any model. The programs&apos; own files are only read. The search keeps an index of their text in the data folder; it is deleted when you turn a program off.</source>
        <translation>这些程序的对话会显示在您自己的对话下方，可被搜索到，并可在这里使用任意模型继续。程序自己的文件只会被读取。为了搜索，其中的文字会保存在数据文件夹的索引中；关闭某个程序后，其索引随之删除。</translation>
    </message>
    <message>
        <source>No conversations of other assistants were found on this computer.</source>
        <translation>在此计算机上未找到其他助手的对话。</translation>
    </message>
</context>
<context>
    <name>FoundPresenter</name>
    <message>
        <source>Show</source>
        <translation>显示</translation>
    </message>
    <message>
        <source>Not now</source>
        <translation>以后再说</translation>
    </message>
    <message>
        <source>Never</source>
        <translation>从不</translation>
    </message>
</context>
<context>
    <name>FoundSection</name>
    <message>
        <source>Conversations of other programs</source>
        <translation>其他程序的对话</translation>
    </message>
    <message>
        <source>open</source>
        <translation>已展开</translation>
    </message>
    <message>
        <source>closed</source>
        <translation>已折叠</translation>
    </message>
    <message>
        <source>{0}, conversations: {1}, {2}</source>
        <translation>{0}，对话：{1}，{2}</translation>
    </message>
    <message>
        <source>Conversations of {0} on this computer, read only</source>
        <translation>此计算机上 {0} 的对话，只读</translation>
    </message>
    <message>
        <source>Untitled</source>
        <translation>无标题</translation>
    </message>
</context>
<context>
    <name>HelpDialog</name>
    <message>
        <source>Guide</source>
        <translation>指南</translation>
    </message>
    <message>
        <source>Keyboard shortcuts</source>
        <translation>键盘快捷键</translation>
    </message>
    <message>
        <source>About</source>
        <translation>关于</translation>
    </message>
    <message>
        <source>Licences</source>
        <translation>许可证</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>关闭</translation>
    </message>
    <message>
        <source>guide.md</source>
        <translation>guide_zh_CN.md</translation>
    </message>
    <message>
        <source>Help</source>
        <translation>帮助</translation>
    </message>
    <message>
        <source>Pages</source>
        <translation>页面</translation>
    </message>
    <message>
        <source>Page</source>
        <translation>页面</translation>
    </message>
</context>
<context>
    <name>Hosts</name>
    <message>
        <source>{0} (looks like “{1}”, but “{2}” is {3})</source>
        <translation>{0}（看起来像“{1}”，但“{2}”是 {3}）</translation>
    </message>
</context>
<context>
    <name>HttpFields</name>
    <message>
        <source>Sign in with the browser (OAuth)</source>
        <translation>通过浏览器登录 (OAuth)</translation>
    </message>
    <message>
        <source>Save, then press “Sign in…” on the server&apos;s card. Your browser opens a page of the server. The sign-in is kept in the keyring.</source>
        <translation>请先保存，然后在服务器的卡片上按“登录…”。浏览器会打开服务器的页面。登录凭据保存在密钥环中。</translation>
    </message>
    <message>
        <source>Address</source>
        <translation>地址</translation>
    </message>
    <message>
        <source>Headers</source>
        <translation>标头</translation>
    </message>
    <message>
        <source>Sign-in</source>
        <translation>登录</translation>
    </message>
    <message>
        <source>Enter the address of the server. It begins with https://.</source>
        <translation>请输入服务器的地址。地址以 https:// 开头。</translation>
    </message>
    <message>
        <source>This is not a web address. It begins with https:// or http://.</source>
        <translation>这不是网址。网址以 https:// 或 http:// 开头。</translation>
    </message>
    <message>
        <source>The values of the headers belong to {0} and are not sent to other addresses. Enter them again.</source>
        <translation>标头的值属于 {0}，不会发送到其他地址。请重新输入。</translation>
    </message>
    <message>
        <source>Others on the network can read what is sent to an http:// address. Use https:// if the server offers it.</source>
        <translation>网络上的其他人可以读取发送到 http:// 地址的内容。如果服务器支持，请使用 https://。</translation>
    </message>
</context>
<context>
    <name>ImportCard</name>
    <message>
        <source>Import {0}</source>
        <translation>导入 {0}</translation>
    </message>
    <message>
        <source>Command line of {0}</source>
        <translation>{0} 的命令行</translation>
    </message>
    <message>
        <source>Address of {0}</source>
        <translation>{0} 的地址</translation>
    </message>
    <message>
        <source>Plain variables: {0}</source>
        <translation>普通变量：{0}</translation>
    </message>
    <message>
        <source>Goes to the keyring: {0}</source>
        <translation>存入密钥环：{0}</translation>
    </message>
    <message>
        <source>It is turned off in the other program, and stays off here.</source>
        <translation>它在另一个程序中是关闭的，在这里也保持关闭。</translation>
    </message>
    <message>
        <source>The other program asks for these values itself: {0}. Enter them with Edit afterwards.</source>
        <translation>这些值由另一个程序自行询问：{0}。请之后通过“编辑”输入。</translation>
    </message>
    <message>
        <source>Desktop Agent does not fill in values in ${…}. Enter them with Edit afterwards.</source>
        <translation>Desktop Agent 不会填充 ${…} 中的值。请之后通过“编辑”输入。</translation>
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
        <translation>以 JSON 表示的服务器</translation>
    </message>
    <message>
        <source>Programs run on this computer, with your rights. Read each command line, and import only what you know.</source>
        <translation>程序会以您的权限在此计算机上运行。请阅读每个命令行，只导入您了解的内容。</translation>
    </message>
    <message>
        <source>Import</source>
        <translation>导入</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>取消</translation>
    </message>
    <message>
        <source>From {0}</source>
        <translation>来自 {0}</translation>
    </message>
    <message>
        <source>{0} can be imported, {1} cannot.</source>
        <translation>可以导入：{0} 个，无法导入：{1} 个。</translation>
    </message>
    <message>
        <source>Import 1 server</source>
        <translation>导入 1 个服务器</translation>
    </message>
    <message>
        <source>Import {0} servers</source>
        <translation>导入 {0} 个服务器</translation>
    </message>
    <message>
        <source>JSON (*.json *.jsonc)</source>
        <translation>JSON (*.json *.jsonc)</translation>
    </message>
    <message>
        <source>All files (*)</source>
        <translation>所有文件 (*)</translation>
    </message>
    <message>
        <source>Choose a file of servers</source>
        <translation>选择服务器文件</translation>
    </message>
    <message>
        <source>Import servers</source>
        <translation>导入服务器</translation>
    </message>
    <message>
        <source>Paste the JSON that a server&apos;s page gives for other programs, or choose a file. Nothing is started yet.</source>
        <translation>粘贴服务器页面为其他程序提供的 JSON，或选择一个文件。目前还不会启动任何程序。</translation>
    </message>
    <message>
        <source>Choose file…</source>
        <translation>选择文件…</translation>
    </message>
</context>
<context>
    <name>InboxDialog</name>
    <message>
        <source>Calls that wait for you</source>
        <translation>等待您处理的调用</translation>
    </message>
    <message>
        <source>Open the conversation of a call to see all of it and to decide.</source>
        <translation>打开调用所属的对话即可查看全部内容并作出决定。</translation>
    </message>
    <message>
        <source>Nothing waits for you. Calls that need your approval are listed here, from all conversations.</source>
        <translation>没有等待您处理的内容。所有对话中需要您批准的调用都会列在这里。</translation>
    </message>
    <message>
        <source>Open</source>
        <translation>打开</translation>
    </message>
    <message>
        <source>Open the conversation</source>
        <translation>打开对话</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>关闭</translation>
    </message>
    <message>
        <source>Waiting calls: {0}</source>
        <translation>等待中的调用：{0}</translation>
    </message>
    <message>
        <source>A tool</source>
        <translation>一个工具</translation>
    </message>
    <message>
        <source>The agent {0} asks</source>
        <translation>智能体 {0} 请求</translation>
    </message>
    <message>
        <source>The assistant asks</source>
        <translation>助手请求</translation>
    </message>
    <message>
        <source>since {0}</source>
        <translation>自 {0} 起</translation>
    </message>
    <message>
        <source>{0}. {1}, in the conversation {2}, {3}</source>
        <translation>{0}。{1}，位于对话 {2}，{3}</translation>
    </message>
    <message>
        <source>{0} · {1}</source>
        <translation>{0} · {1}</translation>
    </message>
    <message>
        <source>Waiting approvals</source>
        <translation>待批准</translation>
    </message>
</context>
<context>
    <name>Json</name>
    <message>
        <source>Line {0}, column {1}: {2}</source>
        <translation>第 {0} 行，第 {1} 列：{2}</translation>
    </message>
    <message>
        <source>This is nested too deep. Remove some levels.</source>
        <translation>嵌套过深。请去掉一些层级。</translation>
    </message>
    <message>
        <source>A number has too many digits. Write it shorter, or as text.</source>
        <translation>某个数字的位数过多。请缩短它，或写成文本。</translation>
    </message>
    <message>
        <source>The arguments must be a JSON object: write {…} around them.</source>
        <translation>参数必须是 JSON 对象：请用 {…} 括起来。</translation>
    </message>
    <message>
        <source>There is nothing here. Write {} if there are no arguments.</source>
        <translation>这里是空的。没有参数时请写 {}。</translation>
    </message>
    <message>
        <source>A name in double quotes is missing here. Write one, or remove the comma before it.</source>
        <translation>这里缺少双引号中的名称。请写上，或去掉前面的逗号。</translation>
    </message>
    <message>
        <source>There is a comma too many. Remove it.</source>
        <translation>多了一个逗号。请去掉它。</translation>
    </message>
    <message>
        <source>A colon is missing here, between a name and its value. Write one.</source>
        <translation>名称和值之间缺少冒号。请写上。</translation>
    </message>
    <message>
        <source>A comma, or the closing bracket, is missing here. Write it.</source>
        <translation>这里缺少逗号或右括号。请写上。</translation>
    </message>
    <message>
        <source>A value is missing here. Write one: a text in double quotes, a number, true, false, null, […], {…}.</source>
        <translation>这里缺少值。请写一个：双引号中的文本、数字、true、false、null、[…]、{…}。</translation>
    </message>
    <message>
        <source>The text that begins here has no end. Write a double quote after it.</source>
        <translation>从这里开始的文本没有结束。请在其后写上双引号。</translation>
    </message>
    <message>
        <source>A text contains a line break or a tab. Write \n or \t instead.</source>
        <translation>文本中有换行符或制表符。请改写为 \n 或 \t。</translation>
    </message>
    <message>
        <source>A single backslash cannot be used here. Write it twice: \\</source>
        <translation>这里不能使用单个反斜杠。请写两个：\\</translation>
    </message>
    <message>
        <source>There is text after the end of the JSON. Remove it.</source>
        <translation>JSON 结尾之后还有文本。请将其删除。</translation>
    </message>
    <message>
        <source>This is not valid JSON. Compare it with the original arguments.</source>
        <translation>这不是有效的 JSON。请与原来的参数对照。</translation>
    </message>
    <message>
        <source>{0} is not JSON. Write a number, or null.</source>
        <translation>{0} 不是 JSON。请写数字或 null。</translation>
    </message>
    <message>
        <source>The number {0} is too large. Write a smaller one, or a text.</source>
        <translation>数字 {0} 过大。请写较小的数字，或写成文本。</translation>
    </message>
    <message>
        <source>A name is used twice. Remove one of the two.</source>
        <translation>某个名称写了两次。请去掉其中一个。</translation>
    </message>
</context>
<context>
    <name>JumpButton</name>
    <message>
        <source>Jump to latest</source>
        <translation>跳到最新</translation>
    </message>
    <message>
        <source>{0} new</source>
        <translation>{0} 条新消息</translation>
    </message>
</context>
<context>
    <name>LicencesPage</name>
    <message>
        <source>Components</source>
        <translation>组件</translation>
    </message>
    <message>
        <source>Text of the licence</source>
        <translation>许可证文本</translation>
    </message>
    <message>
        <source>Licences</source>
        <translation>许可证</translation>
    </message>
    <message>
        <source>The components of this program, and their licences.</source>
        <translation>本程序的组件及其许可证。</translation>
    </message>
    <message>
        <source>Licence of {0}</source>
        <translation>{0} 的许可证</translation>
    </message>
</context>
<context>
    <name>LocalModelSettings</name>
    <message>
        <source>Looking for model files on this computer…</source>
        <translation>正在查找此计算机上的模型文件…</translation>
    </message>
    <message>
        <source>No model files were found. Choose one whose name ends in .gguf, or get one with another program.</source>
        <translation>未找到模型文件。请选择名称以 .gguf 结尾的文件，或用其他程序下载一个。</translation>
    </message>
    <message>
        <source>Models are run by llama.cpp, which is not installed here. Install it with your package manager, “brew install llama.cpp” or “winget install llama.cpp”, or from github.com/ggml-org/llama.cpp. Then press “Look again”.</source>
        <translation>模型由 llama.cpp 运行，但此处尚未安装。请用软件包管理器安装，或运行“brew install llama.cpp”或“winget install llama.cpp”，或从 github.com/ggml-org/llama.cpp 获取，然后按“重新查找”。</translation>
    </message>
    <message>
        <source>Stop the model</source>
        <translation>停止模型</translation>
    </message>
    <message>
        <source>Choose a file…</source>
        <translation>选择文件…</translation>
    </message>
    <message>
        <source>Look again</source>
        <translation>重新查找</translation>
    </message>
    <message>
        <source>Run a model file on this computer: no key, no network, no cost.</source>
        <translation>在此计算机上运行模型文件：无需密钥，无需网络，没有费用。</translation>
    </message>
    <message>
        <source>Loading “{0}”: {1} in memory, the file has {2}.</source>
        <translation>正在加载“{0}”：内存中 {1}，文件大小 {2}。</translation>
    </message>
    <message>
        <source>“{0}” is running and uses {1} of memory.</source>
        <translation>“{0}”正在运行，占用 {1} 内存。</translation>
    </message>
    <message>
        <source>Choose a model file</source>
        <translation>选择模型文件</translation>
    </message>
    <message>
        <source>Models (*.gguf)</source>
        <translation>模型 (*.gguf)</translation>
    </message>
</context>
<context>
    <name>LocalRow</name>
    <message>
        <source>not running</source>
        <translation>未运行</translation>
    </message>
    <message>
        <source>running, 1 model</source>
        <translation>运行中，1 个模型</translation>
    </message>
    <message>
        <source>running, {0} models</source>
        <translation>运行中，{0} 个模型</translation>
    </message>
    <message>
        <source>Use {0}</source>
        <translation>使用 {0}</translation>
    </message>
    <message>
        <source>Use</source>
        <translation>使用</translation>
    </message>
</context>
<context>
    <name>LogPane</name>
    <message>
        <source>Log of {0}</source>
        <translation>{0} 的日志</translation>
    </message>
    <message>
        <source>Which lines are shown</source>
        <translation>显示哪些行</translation>
    </message>
    <message>
        <source>Copy</source>
        <translation>复制</translation>
    </message>
    <message>
        <source>Copy the log of {0}</source>
        <translation>复制 {0} 的日志</translation>
    </message>
    <message>
        <source>The log is empty.</source>
        <translation>日志为空。</translation>
    </message>
    <message>
        <source>The whole line</source>
        <translation>整行</translation>
    </message>
    <message>
        <source>{0} lines copied</source>
        <translation>已复制 {0} 行</translation>
    </message>
    <message>
        <source>All lines</source>
        <translation>所有行</translation>
    </message>
    <message>
        <source>Without debugging</source>
        <translation>不含调试信息</translation>
    </message>
    <message>
        <source>Warnings and errors</source>
        <translation>警告和错误</translation>
    </message>
    <message>
        <source>Errors</source>
        <translation>错误</translation>
    </message>
    <message>
        <source>Only the program&apos;s own output</source>
        <translation>仅程序自身的输出</translation>
    </message>
</context>
<context>
    <name>MainWindow</name>
    <message>
        <source>The model is still working.</source>
        <translation>模型仍在工作。</translation>
    </message>
    <message>
        <source>Closing stops the model. The answer so far is kept.</source>
        <translation>关闭会停止模型。目前为止的回答会保留。</translation>
    </message>
    <message>
        <source>Keep working</source>
        <translation>继续工作</translation>
    </message>
    <message>
        <source>Stop and close</source>
        <translation>停止并关闭</translation>
    </message>
    <message>
        <source>A tool call waits for your decision.</source>
        <translation>有一个工具调用在等待您的决定。</translation>
    </message>
    <message>
        <source>The call keeps waiting. You are asked again at the next start.</source>
        <translation>调用会继续等待。下次启动时会再次询问您。</translation>
    </message>
    <message>
        <source>Keep open</source>
        <translation>保持打开</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>关闭</translation>
    </message>
    <message>
        <source>Close Desktop Agent?</source>
        <translation>关闭 Desktop Agent？</translation>
    </message>
    <message>
        <source>{0} (not stored)</source>
        <translation>{0}（不保存）</translation>
    </message>
</context>
<context>
    <name>McpCatalogControls</name>
    <message>
        <source>Insert from a server</source>
        <translation>从服务器插入</translation>
    </message>
    <message>
        <source>Insert from an MCP server</source>
        <translation>从 MCP 服务器插入</translation>
    </message>
</context>
<context>
    <name>McpPresenter</name>
    <message>
        <source>Insert from a server</source>
        <translation>从服务器插入</translation>
    </message>
    <message>
        <source>MCP servers…</source>
        <translation>MCP 服务器…</translation>
    </message>
</context>
<context>
    <name>McpServerCard</name>
    <message>
        <source>On</source>
        <translation>开启</translation>
    </message>
    <message>
        <source>Test</source>
        <translation>测试</translation>
    </message>
    <message>
        <source>Test {0}</source>
        <translation>测试 {0}</translation>
    </message>
    <message>
        <source>Show tools</source>
        <translation>显示工具</translation>
    </message>
    <message>
        <source>Show the tools of {0}</source>
        <translation>显示 {0} 的工具</translation>
    </message>
    <message>
        <source>Show log</source>
        <translation>显示日志</translation>
    </message>
    <message>
        <source>Show the log of {0}</source>
        <translation>显示 {0} 的日志</translation>
    </message>
    <message>
        <source>Edit</source>
        <translation>编辑</translation>
    </message>
    <message>
        <source>Edit {0}</source>
        <translation>编辑 {0}</translation>
    </message>
    <message>
        <source>Remove “{0}”? Its secrets are deleted from the keyring too.</source>
        <translation>移除“{0}”？其机密信息也会从密钥环中删除。</translation>
    </message>
    <message>
        <source>Remove</source>
        <translation>移除</translation>
    </message>
    <message>
        <source>Remove {0}</source>
        <translation>移除 {0}</translation>
    </message>
    <message>
        <source>Keep</source>
        <translation>保留</translation>
    </message>
    <message>
        <source>Keep {0}</source>
        <translation>保留 {0}</translation>
    </message>
    <message>
        <source>Really remove {0}</source>
        <translation>确认移除 {0}</translation>
    </message>
    <message>
        <source>Starting the server and asking for its tools. If it is downloaded first, this takes up to a minute…</source>
        <translation>正在启动服务器并查询其工具。如果需要先下载，最多可能需要一分钟…</translation>
    </message>
    <message>
        <source>Hide tools</source>
        <translation>隐藏工具</translation>
    </message>
    <message>
        <source>Hide log</source>
        <translation>隐藏日志</translation>
    </message>
    <message>
        <source>What it says about its tools is trusted</source>
        <translation>信任它对自身工具的说明</translation>
    </message>
    <message>
        <source>Secret variables: {0}</source>
        <translation>机密变量：{0}</translation>
    </message>
    <message>
        <source>Headers: {0}</source>
        <translation>标头：{0}</translation>
    </message>
    <message>
        <source>MCP server {0}</source>
        <translation>MCP 服务器 {0}</translation>
    </message>
    <message>
        <source>Use {0}</source>
        <translation>使用 {0}</translation>
    </message>
</context>
<context>
    <name>McpServerSettings</name>
    <message>
        <source>You can close this page and go back to Desktop Agent.</source>
        <translation>您可以关闭此页面并返回 Desktop Agent。</translation>
    </message>
    <message>
        <source>The sign-in was refused. You can close this page and go back to Desktop Agent.</source>
        <translation>登录被拒绝。您可以关闭此页面并返回 Desktop Agent。</translation>
    </message>
    <message>
        <source>This sign-in has ended.</source>
        <translation>此次登录已结束。</translation>
    </message>
    <message>
        <source>This is not an answer to a sign-in.</source>
        <translation>这不是登录的应答。</translation>
    </message>
    <message>
        <source>There is nothing here.</source>
        <translation>这里什么也没有。</translation>
    </message>
    <message>
        <source>en</source>
        <translation>zh-CN</translation>
    </message>
</context>
<context>
    <name>McpServersForm</name>
    <message>
        <source>No MCP server is set up yet. Add a program on this computer or an address on the web, or import the servers of another program.</source>
        <translation>尚未设置任何 MCP 服务器。请添加此计算机上的程序或网络地址，或导入其他程序的服务器。</translation>
    </message>
    <message>
        <source>Add program…</source>
        <translation>添加程序…</translation>
    </message>
    <message>
        <source>Add address…</source>
        <translation>添加地址…</translation>
    </message>
    <message>
        <source>Import…</source>
        <translation>导入…</translation>
    </message>
    <message>
        <source>MCP servers give the agent more tools than it has by itself: for your tickets, a database, a browser. They speak the Model Context Protocol (MCP).</source>
        <translation>MCP 服务器为智能体提供更多工具：用于您的工单、数据库或浏览器。它们使用模型上下文协议 (MCP)。</translation>
    </message>
</context>
<context>
    <name>MenuBar</name>
    <message>
        <source>Menu bar</source>
        <translation>菜单栏</translation>
    </message>
    <message>
        <source>&amp;File</source>
        <translation>文件(&amp;F)</translation>
    </message>
    <message>
        <source>&amp;Edit</source>
        <translation>编辑(&amp;E)</translation>
    </message>
    <message>
        <source>&amp;View</source>
        <translation>视图(&amp;V)</translation>
    </message>
    <message>
        <source>&amp;Conversation</source>
        <translation>对话(&amp;C)</translation>
    </message>
    <message>
        <source>&amp;Message</source>
        <translation>消息(&amp;M)</translation>
    </message>
    <message>
        <source>&amp;Help</source>
        <translation>帮助(&amp;H)</translation>
    </message>
    <message>
        <source>More menus</source>
        <translation>更多菜单</translation>
    </message>
    <message>
        <source>Go to conversation</source>
        <translation>转到对话</translation>
    </message>
</context>
<context>
    <name>MessageDeletion</name>
    <message>
        <source>Delete your message?</source>
        <translation>删除您的消息？</translation>
    </message>
    <message>
        <source>Delete this answer?</source>
        <translation>删除此回答？</translation>
    </message>
    <message>
        <source>This cannot be undone.</source>
        <translation>此操作无法撤销。</translation>
    </message>
    <message>
        <source>Files that tools changed stay as they are; these changes cannot be undone from here any more.</source>
        <translation>工具更改过的文件保持不变；此后无法再从这里撤销这些更改。</translation>
    </message>
    <message>
        <source>Changes made by tools are not undone.</source>
        <translation>工具所做的更改不会被撤销。</translation>
    </message>
    <message>
        <source>It is deleted for good.</source>
        <translation>它将被永久删除。</translation>
    </message>
    <message>
        <source>It is deleted for good, with the message after it on another branch.</source>
        <translation>它以及其后位于另一分支的消息将被永久删除。</translation>
    </message>
    <message>
        <source>It is deleted for good, with the message after it.</source>
        <translation>它以及其后的消息将被永久删除。</translation>
    </message>
    <message>
        <source>It is deleted for good, with {0} messages after it on other branches.</source>
        <translation>它以及其后位于其他分支的 {0} 条消息将被永久删除。</translation>
    </message>
    <message>
        <source>It is deleted for good, with {0} messages after it, 1 of them on another branch.</source>
        <translation>它以及其后的 {0} 条消息（其中 1 条在另一分支）将被永久删除。</translation>
    </message>
    <message>
        <source>It is deleted for good, with {0} messages after it, {1} of them on other branches.</source>
        <translation>它以及其后的 {0} 条消息（其中 {1} 条在其他分支）将被永久删除。</translation>
    </message>
    <message>
        <source>It is deleted for good, with {0} messages after it.</source>
        <translation>它以及其后的 {0} 条消息将被永久删除。</translation>
    </message>
</context>
<context>
    <name>MessageEditor</name>
    <message>
        <source>Message</source>
        <translation>消息</translation>
    </message>
    <message>
        <source>Write a message</source>
        <translation>写消息</translation>
    </message>
</context>
<context>
    <name>MessageQueueView</name>
    <message>
        <source>Send now</source>
        <translation>立即发送</translation>
    </message>
    <message>
        <source>Waiting messages: {0}</source>
        <translation>等待中的消息：{0}</translation>
    </message>
    <message>
        <source>Waiting messages</source>
        <translation>等待中的消息</translation>
    </message>
</context>
<context>
    <name>MirrorsField</name>
    <message>
        <source>Further addresses</source>
        <translation>更多地址</translation>
    </message>
    <message>
        <source>Other addresses of the same service, one per line. They are tried when the first does not answer, with the same key.</source>
        <translation>同一服务的更多地址，每行一个。第一个地址不应答时会使用它们，并使用相同的密钥。</translation>
    </message>
</context>
<context>
    <name>ModeCard</name>
    <message>
        <source>Mode {0}</source>
        <translation>模式 {0}</translation>
    </message>
    <message>
        <source>Copy</source>
        <translation>复制</translation>
    </message>
    <message>
        <source>Copy {0}</source>
        <translation>复制 {0}</translation>
    </message>
    <message>
        <source>Edit {0}</source>
        <translation>编辑 {0}</translation>
    </message>
    <message>
        <source>Edit</source>
        <translation>编辑</translation>
    </message>
    <message>
        <source>Remove {0}</source>
        <translation>移除 {0}</translation>
    </message>
    <message>
        <source>Remove</source>
        <translation>移除</translation>
    </message>
    <message>
        <source>And {0} more rules</source>
        <translation>以及另外 {0} 条规则</translation>
    </message>
</context>
<context>
    <name>ModeEditor</name>
    <message>
        <source>Another mode has this name. Choose another one.</source>
        <translation>另一个模式已使用此名称。请另选一个。</translation>
    </message>
    <message>
        <source>A mode needs a name. Write one.</source>
        <translation>模式需要名称。请写一个。</translation>
    </message>
    <message>
        <source>A short name has small letters from a to z, digits and “-”, and begins with a letter.</source>
        <translation>短名称只能包含小写字母 a 到 z、数字和“-”，并以字母开头。</translation>
    </message>
    <message>
        <source>Another mode has this short name. Choose another one.</source>
        <translation>另一个模式已使用此短名称。请另选一个。</translation>
    </message>
    <message>
        <source>The instructions have more than {0} characters. Shorten them.</source>
        <translation>指令超过了 {0} 个字符。请缩短。</translation>
    </message>
    <message>
        <source>A rule is not finished. Add it, or cancel it.</source>
        <translation>有一条规则尚未完成。请添加或取消它。</translation>
    </message>
    <message>
        <source>Name</source>
        <translation>名称</translation>
    </message>
    <message>
        <source>The agent and specialists call the mode by this name. It cannot be changed later.</source>
        <translation>智能体和专家用此名称来指称该模式。之后无法更改。</translation>
    </message>
    <message>
        <source>Short name</source>
        <translation>短名称</translation>
    </message>
    <message>
        <source>Denied: the agent only reads</source>
        <translation>拒绝：智能体只读取</translation>
    </message>
    <message>
        <source>Asked about, one by one</source>
        <translation>逐个询问</translation>
    </message>
    <message>
        <source>Files change without asking; the rest is asked about</source>
        <translation>更改文件不询问；其他操作都询问</translation>
    </message>
    <message>
        <source>Calls that change something</source>
        <translation>会更改内容的调用</translation>
    </message>
    <message>
        <source>Nothing</source>
        <translation>无</translation>
    </message>
    <message>
        <source>Added to the instructions while the mode is on.</source>
        <translation>此模式有效期间添加到指令中。</translation>
    </message>
    <message>
        <source>Instructions</source>
        <translation>指令</translation>
    </message>
    <message>
        <source>Deny overrides Ask, and Ask overrides Allow. Rules of the conversation and of every folder apply as well.</source>
        <translation>“拒绝”优先于“询问”，“询问”优先于“允许”。对话和各文件夹的规则同时有效。</translation>
    </message>
    <message>
        <source>Rules</source>
        <translation>规则</translation>
    </message>
</context>
<context>
    <name>ModePicker</name>
    <message>
        <source>Mode</source>
        <translation>模式</translation>
    </message>
    <message>
        <source>Mode: {0}</source>
        <translation>模式：{0}</translation>
    </message>
    <message>
        <source>Default mode</source>
        <translation>默认模式</translation>
    </message>
    <message>
        <source>{0} → {1}?</source>
        <translation>{0} → {1}？</translation>
    </message>
    <message>
        <source>The agent asks for the mode “{0}”.</source>
        <translation>智能体请求切换到模式“{0}”。</translation>
    </message>
    <message>
        <source>Change to “{0}” now</source>
        <translation>立即切换到“{0}”</translation>
    </message>
    <message>
        <source>Keep “{0}”</source>
        <translation>保持“{0}”</translation>
    </message>
</context>
<context>
    <name>ModeRequestBar</name>
    <message>
        <source>The agent asks for another mode</source>
        <translation>智能体请求切换到其他模式</translation>
    </message>
    <message>
        <source>The agent asks for the mode “{0}”. It changes at its next step unless you object.</source>
        <translation>智能体请求切换到模式“{0}”。除非您反对，否则它会在下一步切换。</translation>
    </message>
    <message>
        <source>Change now</source>
        <translation>立即切换</translation>
    </message>
    <message>
        <source>Keep “{0}”</source>
        <translation>保持“{0}”</translation>
    </message>
</context>
<context>
    <name>ModeSettings</name>
    <message>
        <source>Add mode…</source>
        <translation>添加模式…</translation>
    </message>
    <message>
        <source>You have no mode of your own yet. Copy one of those above, or add one.</source>
        <translation>您还没有自己的模式。请复制上面的某个模式，或添加一个。</translation>
    </message>
    <message>
        <source>There can be {0} modes. Remove one first.</source>
        <translation>最多可有 {0} 个模式。请先移除一个。</translation>
    </message>
    <message>
        <source>{0} (copy)</source>
        <translation>{0}（副本）</translation>
    </message>
    <message>
        <source>The mode “{0}” is removed. Conversations that used it now ask you more often.</source>
        <translation>模式“{0}”已移除。使用过它的对话现在会更多地询问您。</translation>
    </message>
    <message>
        <source>A mode says what the agent may do without asking you. Choose it below the message editor. Changes to a mode apply at once in every open conversation, to each call that has not started.</source>
        <translation>模式规定智能体可以不询问您就做什么。请在消息框下方选择。对模式的更改会立即在每个打开的对话中生效，适用于尚未开始的每个调用。</translation>
    </message>
    <message>
        <source>Always there</source>
        <translation>内置</translation>
    </message>
    <message>
        <source>Your own</source>
        <translation>您自己的</translation>
    </message>
</context>
<context>
    <name>ModelChoice</name>
    <message>
        <source>{0} (not listed)</source>
        <translation>{0}（未列出）</translation>
    </message>
    <message>
        <source>Model</source>
        <translation>模型</translation>
    </message>
    <message>
        <source>Name of the model</source>
        <translation>模型名称</translation>
    </message>
    <message>
        <source>Name of the model, as its server calls it</source>
        <translation>服务器所用的模型名称</translation>
    </message>
    <message>
        <source>Same as its caller</source>
        <translation>与调用者相同</translation>
    </message>
    <message>
        <source>Another model…</source>
        <translation>其他模型…</translation>
    </message>
</context>
<context>
    <name>ModelPicker</name>
    <message>
        <source>Models</source>
        <translation>模型</translation>
    </message>
    <message>
        <source>Refresh models</source>
        <translation>刷新模型</translation>
    </message>
    <message>
        <source>Connect a model…</source>
        <translation>连接模型…</translation>
    </message>
    <message>
        <source>Run a model file…</source>
        <translation>运行模型文件…</translation>
    </message>
    <message>
        <source>Search models</source>
        <translation>搜索模型</translation>
    </message>
    <message>
        <source>Search, or type a model id</source>
        <translation>搜索，或输入模型 ID</translation>
    </message>
    <message>
        <source>Model</source>
        <translation>模型</translation>
    </message>
    <message>
        <source>Choose a model</source>
        <translation>选择模型</translation>
    </message>
</context>
<context>
    <name>ModelRows</name>
    <message>
        <source>No model is connected yet.</source>
        <translation>尚未连接模型。</translation>
    </message>
    <message>
        <source>Only the demo is connected yet.</source>
        <translation>目前只连接了演示。</translation>
    </message>
    <message>
        <source>Demo</source>
        <translation>演示</translation>
    </message>
    <message>
        <source>Demo (offline)</source>
        <translation>演示（离线）</translation>
    </message>
    <message>
        <source>No models</source>
        <translation>没有模型</translation>
    </message>
    <message>
        <source>Use “{0}”</source>
        <translation>使用“{0}”</translation>
    </message>
    <message>
        <source>pictures</source>
        <translation>图片</translation>
    </message>
    <message>
        <source>makes pictures</source>
        <translation>可生成图片</translation>
    </message>
    <message>
        <source>tools</source>
        <translation>工具</translation>
    </message>
    <message>
        <source>reasoning</source>
        <translation>推理</translation>
    </message>
    <message>
        <source>retired {0}</source>
        <translation>已于 {0} 停用</translation>
    </message>
    <message>
        <source>retires {0}</source>
        <translation>将于 {0} 停用</translation>
    </message>
    <message>
        <source>Context window: {0} tokens</source>
        <translation>上下文窗口：{0} 个 token</translation>
    </message>
    <message>
        <source>Price per million tokens: {0} in, {1} out</source>
        <translation>每百万 token 输入 {0}，输出 {1}</translation>
    </message>
</context>
<context>
    <name>ModelsField</name>
    <message>
        <source>Model, if the server lists none</source>
        <translation>模型（如果服务器不列出）</translation>
    </message>
</context>
<context>
    <name>Modes</name>
    <message>
        <source>Mode editor</source>
        <translation>模式编辑器</translation>
    </message>
    <message>
        <source>With any arguments</source>
        <translation>任意参数</translation>
    </message>
    <message>
        <source>With files in the folder</source>
        <translation>文件夹中的文件</translation>
    </message>
    <message>
        <source>With the host</source>
        <translation>主机</translation>
    </message>
    <message>
        <source>Commands that begin with</source>
        <translation>以此开头的命令</translation>
    </message>
    <message>
        <source>Exactly the command</source>
        <translation>完全匹配的命令</translation>
    </message>
    <message>
        <source>Write the full path of the folder.</source>
        <translation>请写文件夹的完整路径。</translation>
    </message>
    <message>
        <source>Write the name of a host, such as example.org, or *.example.org for every host below it.</source>
        <translation>请写主机名，例如 example.org；或写 *.example.org 表示其下的所有主机。</translation>
    </message>
    <message>
        <source>A quotation mark has no end. Close it.</source>
        <translation>引号没有结束。请补上。</translation>
    </message>
    <message>
        <source>Write the first words of the command, such as git status.</source>
        <translation>请写命令开头的词，例如 git status。</translation>
    </message>
    <message>
        <source>Default</source>
        <translation>默认</translation>
    </message>
    <message>
        <source>Plan</source>
        <translation>计划</translation>
    </message>
    <message>
        <source>Accept edits</source>
        <translation>接受编辑</translation>
    </message>
    <message>
        <source>Nothing is changed</source>
        <translation>不更改任何内容</translation>
    </message>
    <message>
        <source>Asks before it changes something</source>
        <translation>更改内容前询问</translation>
    </message>
    <message>
        <source>Changes files without asking</source>
        <translation>更改文件不询问</translation>
    </message>
    <message>
        <source>{0}; its rules allow more</source>
        <translation>{0}；自有规则允许更多</translation>
    </message>
    <message>
        <source>{0}; its rules deny more or ask more often</source>
        <translation>{0}；自有规则拒绝更多或更常询问</translation>
    </message>
    <message>
        <source>{0}; its rules allow some calls, and deny or ask about others</source>
        <translation>{0}；自有规则允许一些调用，拒绝或询问另一些</translation>
    </message>
</context>
<context>
    <name>NetworkView</name>
    <message>
        <source>Address</source>
        <translation>地址</translation>
    </message>
    <message>
        <source>Network request</source>
        <translation>网络请求</translation>
    </message>
</context>
<context>
    <name>OAuthClientFields</name>
    <message>
        <source>Client id, if you were given one</source>
        <translation>客户端 ID（如果您有）</translation>
    </message>
    <message>
        <source>Client id</source>
        <translation>客户端 ID</translation>
    </message>
    <message>
        <source>Client secret</source>
        <translation>客户端密钥</translation>
    </message>
    <message>
        <source>Most servers need neither. Some accept only registered programs: the operator of such a server gives you both. The secret goes to the keyring.</source>
        <translation>大多数服务器两者都不需要。有些服务器只接受已登记的程序：此类服务器的运营者会向您提供两者。密钥存入密钥环。</translation>
    </message>
    <message>
        <source>Kept in the keyring</source>
        <translation>保存在密钥环中</translation>
    </message>
    <message>
        <source>Client secret, if it has one</source>
        <translation>客户端密钥（如果有）</translation>
    </message>
    <message>
        <source>Type here to replace it.</source>
        <translation>在此输入即可替换。</translation>
    </message>
</context>
<context>
    <name>OfferRows</name>
    <message>
        <source>Starting…</source>
        <translation>正在启动…</translation>
    </message>
    <message>
        <source>It offers no prompts and no resources.</source>
        <translation>它不提供提示词和资源。</translation>
    </message>
    <message>
        <source>It offers no prompts.</source>
        <translation>它不提供提示词。</translation>
    </message>
    <message>
        <source>It offers no resources.</source>
        <translation>它不提供资源。</translation>
    </message>
    <message>
        <source>needs details</source>
        <translation>还需填写</translation>
    </message>
</context>
<context>
    <name>OffersPopup</name>
    <message>
        <source>From MCP servers</source>
        <translation>来自 MCP 服务器</translation>
    </message>
    <message>
        <source>Ask the servers again</source>
        <translation>重新询问服务器</translation>
    </message>
    <message>
        <source>MCP servers…</source>
        <translation>MCP 服务器…</translation>
    </message>
    <message>
        <source>Search prompts and resources</source>
        <translation>搜索提示词和资源</translation>
    </message>
    <message>
        <source>Search prompts</source>
        <translation>搜索提示词</translation>
    </message>
    <message>
        <source>Search resources</source>
        <translation>搜索资源</translation>
    </message>
</context>
<context>
    <name>OrganisePresenter</name>
    <message>
        <source>From the conversation “{0}”:</source>
        <translation>来自对话“{0}”：</translation>
    </message>
    <message>
        <source>{0} (copy)</source>
        <translation>{0}（副本）</translation>
    </message>
    <message>
        <source>The link is copied.</source>
        <translation>链接已复制。</translation>
    </message>
    <message>
        <source>Delete the folder “{0}”?</source>
        <translation>删除文件夹“{0}”？</translation>
    </message>
    <message>
        <source>Its conversations and folders move up one level. Its instructions are deleted.</source>
        <translation>其中的对话和文件夹会上移一级。它的指令会被删除。</translation>
    </message>
    <message>
        <source>Its conversations and folders move up one level. Nothing else is deleted.</source>
        <translation>其中的对话和文件夹会上移一级。其他内容不会删除。</translation>
    </message>
    <message>
        <source>Delete folder</source>
        <translation>删除文件夹</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>取消</translation>
    </message>
</context>
<context>
    <name>PageFrame</name>
    <message>
        <source>From {0}</source>
        <translation>来自 {0}</translation>
    </message>
</context>
<context>
    <name>PalettePresenter</name>
    <message>
        <source>Messages</source>
        <translation>消息</translation>
    </message>
    <message>
        <source>Commands</source>
        <translation>命令</translation>
    </message>
    <message>
        <source>Settings</source>
        <translation>设置</translation>
    </message>
    <message>
        <source>Conversations</source>
        <translation>对话</translation>
    </message>
    <message>
        <source>Models</source>
        <translation>模型</translation>
    </message>
    <message>
        <source>{0}, setting</source>
        <translation>{0}，设置项</translation>
    </message>
</context>
<context>
    <name>Parameters</name>
    <message>
        <source>Own system prompt</source>
        <translation>自定义系统提示词</translation>
    </message>
    <message>
        <source>Temperature {0}</source>
        <translation>温度 {0}</translation>
    </message>
    <message>
        <source>Top-p {0}</source>
        <translation>Top-p {0}</translation>
    </message>
    <message>
        <source>At most {0} tokens</source>
        <translation>最多 {0} 个 token</translation>
    </message>
</context>
<context>
    <name>ParametersButton</name>
    <message>
        <source>Conversation settings</source>
        <translation>对话设置</translation>
    </message>
    <message>
        <source>{0} settings</source>
        <translation>{0} 项设置</translation>
    </message>
    <message>
        <source>Default</source>
        <translation>默认</translation>
    </message>
</context>
<context>
    <name>PermissionDryRun</name>
    <message>
        <source>Tool</source>
        <translation>工具</translation>
    </message>
    <message>
        <source>Arguments as JSON</source>
        <translation>以 JSON 表示的参数</translation>
    </message>
    <message>
        <source>Check</source>
        <translation>检查</translation>
    </message>
    <message>
        <source>Choose a tool and write its arguments as JSON to see whether the call would run.</source>
        <translation>选择一个工具，并以 JSON 写出参数，即可查看该调用是否会运行。</translation>
    </message>
    <message>
        <source>Nothing is run.</source>
        <translation>不会运行任何内容。</translation>
    </message>
    <message>
        <source>Open a conversation with tools to try its rules.</source>
        <translation>打开一个带工具的对话，以试用其规则。</translation>
    </message>
</context>
<context>
    <name>PictureView</name>
    <message>
        <source>Picture: {0}</source>
        <translation>图片：{0}</translation>
    </message>
    <message>
        <source>Reading the picture…</source>
        <translation>正在读取图片…</translation>
    </message>
    <message>
        <source>The picture {0}</source>
        <translation>图片 {0}</translation>
    </message>
    <message>
        <source>The picture cannot be shown: its file is damaged or of another kind.</source>
        <translation>无法显示图片：其文件已损坏或是其他类型。</translation>
    </message>
</context>
<context>
    <name>PictureViewer</name>
    <message>
        <source>Picture</source>
        <translation>图片</translation>
    </message>
    <message>
        <source>Zoom</source>
        <translation>缩放</translation>
    </message>
    <message>
        <source>Picture: {0}</source>
        <translation>图片：{0}</translation>
    </message>
    <message>
        <source>{0} of {1}</source>
        <translation>{0}/{1}</translation>
    </message>
    <message>
        <source>Loading…</source>
        <translation>正在加载…</translation>
    </message>
    <message>
        <source>{0} × {1} pixels</source>
        <translation>{0} × {1} 像素</translation>
    </message>
    <message>
        <source>This picture has {0} megapixels; more than {1} are not opened here. Save it, and open it in an image editor.</source>
        <translation>此图片有 {0} 百万像素；超过 {1} 百万像素的图片不在这里打开。请保存后用图像编辑器打开。</translation>
    </message>
    <message>
        <source>This picture cannot be read: its file is damaged or gone. Ask the model for it again, or attach it again.</source>
        <translation>无法读取此图片：其文件已损坏或丢失。请让模型重新生成，或重新附加。</translation>
    </message>
    <message>
        <source>This picture has {0} megapixels. To spare memory it is shown with {1}; save it and open it in an image editor to see all of them.</source>
        <translation>此图片有 {0} 百万像素。为节省内存，以 {1} 百万像素显示；请保存后用图像编辑器打开以查看全部细节。</translation>
    </message>
    <message>
        <source>{0} %</source>
        <translation>{0}%</translation>
    </message>
    <message>
        <source>Copied</source>
        <translation>已复制</translation>
    </message>
    <message>
        <source>Previous picture</source>
        <translation>上一张图片</translation>
    </message>
    <message>
        <source>Next picture</source>
        <translation>下一张图片</translation>
    </message>
    <message>
        <source>Zoom out</source>
        <translation>缩小</translation>
    </message>
    <message>
        <source>Zoom in</source>
        <translation>放大</translation>
    </message>
    <message>
        <source>Fit to window</source>
        <translation>适合窗口</translation>
    </message>
    <message>
        <source>Copy picture</source>
        <translation>复制图片</translation>
    </message>
    <message>
        <source>Save picture as…</source>
        <translation>图片另存为…</translation>
    </message>
    <message>
        <source>Actual size (1)</source>
        <translation>实际大小 (1)</translation>
    </message>
    <message>
        <source>Actual size</source>
        <translation>实际大小</translation>
    </message>
</context>
<context>
    <name>Pictures</name>
    <message>
        <source>This model cannot see pictures. Choose another model, or remove them before you send.</source>
        <translation>此模型无法查看图片。请选择其他模型，或在发送前移除图片。</translation>
    </message>
    <message>
        <source>This model takes at most {0} pictures: the first of these are left out.</source>
        <translation>此模型最多接受 {0} 张图片：最前面的图片将被省略。</translation>
    </message>
    <message>
        <source>“{0}” is sent in another format: this model does not read {1}.</source>
        <translation>“{0}”将以其他格式发送：此模型不读取 {1}。</translation>
    </message>
    <message>
        <source>“{0}” is made smaller: this model takes at most {1}.</source>
        <translation>“{0}”将被压缩：此模型最多接受 {1}。</translation>
    </message>
    <message>
        <source>“{0}” is scaled down: this model sees at most {1} pixels a side.</source>
        <translation>“{0}”将被缩小：此模型每边最多看 {1} 像素。</translation>
    </message>
    <message>
        <source>{0} pictures are scaled down: this model sees at most {1} pixels a side.</source>
        <translation>{0} 张图片将被缩小：此模型每边最多看 {1} 像素。</translation>
    </message>
</context>
<context>
    <name>PortalKeys</name>
    <message>
        <source>Ask a quick question</source>
        <translation>快速提问</translation>
    </message>
</context>
<context>
    <name>Preferences</name>
    <message>
        <source>Press keys</source>
        <translation>请按键</translation>
    </message>
    <message>
        <source>Browse…</source>
        <translation>浏览…</translation>
    </message>
    <message>
        <source>System font</source>
        <translation>系统字体</translation>
    </message>
    <message>
        <source>{0} (not installed)</source>
        <translation>{0}（未安装）</translation>
    </message>
    <message>
        <source>{0} alone is needed for typing. Combine it with Ctrl or Alt.</source>
        <translation>单独的 {0} 用于输入文字。请与 Ctrl 或 Alt 组合使用。</translation>
    </message>
    <message>
        <source>This is not a whole number above {0}. Write one such as {1}, or leave it empty.</source>
        <translation>这不是大于 {0} 的整数。请写一个，例如 {1}，或留空。</translation>
    </message>
    <message>
        <source>This is not a number from {0} to {1}. Write one such as {2}, or leave it empty.</source>
        <translation>这不是 {0} 到 {1} 之间的数字。请写一个，例如 {2}，或留空。</translation>
    </message>
    <message>
        <source>Appearance</source>
        <translation>外观</translation>
    </message>
    <message>
        <source>Language</source>
        <translation>语言</translation>
    </message>
    <message>
        <source>Language of the window, from the next start on. Models answer in the language that you write in.</source>
        <translation>窗口的语言，下次启动时生效。模型会用您书写的语言回答。</translation>
    </message>
    <message>
        <source>System</source>
        <translation>跟随系统</translation>
    </message>
    <message>
        <source>Theme</source>
        <translation>主题</translation>
    </message>
    <message>
        <source>Light, dark, or whatever the system uses.</source>
        <translation>浅色、深色，或跟随系统。</translation>
    </message>
    <message>
        <source>Light</source>
        <translation>浅色</translation>
    </message>
    <message>
        <source>Dark</source>
        <translation>深色</translation>
    </message>
    <message>
        <source>Zoom</source>
        <translation>缩放</translation>
    </message>
    <message>
        <source>Size of everything in the window, in percent.</source>
        <translation>窗口中所有内容的大小，以百分比表示。</translation>
    </message>
    <message>
        <source>Font</source>
        <translation>字体</translation>
    </message>
    <message>
        <source>Font of the text in conversations. Code has its own font.</source>
        <translation>对话文本的字体。代码使用自己的字体。</translation>
    </message>
    <message>
        <source>Text size</source>
        <translation>文本大小</translation>
    </message>
    <message>
        <source>Text size in conversations, in points at 100 % zoom.</source>
        <translation>对话文本的大小，以磅为单位，按缩放 100% 计。</translation>
    </message>
    <message>
        <source>pt</source>
        <translation>磅</translation>
    </message>
    <message>
        <source>Line width</source>
        <translation>行宽</translation>
    </message>
    <message>
        <source>How wide the lines of a conversation may get. Full takes the whole window.</source>
        <translation>对话中每行的最大宽度。“全宽”占满整个窗口。</translation>
    </message>
    <message>
        <source>Narrow</source>
        <translation>窄</translation>
    </message>
    <message>
        <source>Medium</source>
        <translation>中</translation>
    </message>
    <message>
        <source>Wide</source>
        <translation>宽</translation>
    </message>
    <message>
        <source>Full</source>
        <translation>全宽</translation>
    </message>
    <message>
        <source>Density</source>
        <translation>密度</translation>
    </message>
    <message>
        <source>Space between the lines and messages of a conversation.</source>
        <translation>对话中行与消息之间的间距。</translation>
    </message>
    <message>
        <source>Comfortable</source>
        <translation>宽松</translation>
    </message>
    <message>
        <source>Compact</source>
        <translation>紧凑</translation>
    </message>
    <message>
        <source>Menu bar</source>
        <translation>菜单栏</translation>
    </message>
    <message>
        <source>Always shown. Otherwise Alt or F10 shows it; on a Mac it is at the top of the screen.</source>
        <translation>始终显示。否则按 Alt 或 F10 显示；在 Mac 上它位于屏幕顶部。</translation>
    </message>
    <message>
        <source>Chat</source>
        <translation>聊天</translation>
    </message>
    <message>
        <source>Enter sends</source>
        <translation>按 Enter 发送</translation>
    </message>
    <message>
        <source>Otherwise Ctrl+Enter sends and Enter makes a new line.</source>
        <translation>否则按 Ctrl+Enter 发送，按 Enter 换行。</translation>
    </message>
    <message>
        <source>Notifications</source>
        <translation>通知</translation>
    </message>
    <message>
        <source>Shows a desktop notification when an answer is done or a call waits, while the window is not in front.</source>
        <translation>窗口不在前台时，在桌面上提示回答已完成或有调用在等待。</translation>
    </message>
    <message>
        <source>Close to the tray</source>
        <translation>关闭到托盘</translation>
    </message>
    <message>
        <source>Closing the window keeps the program running, with its icon in the tray. Quit ends it.</source>
        <translation>关闭窗口后，程序会在托盘图标后继续运行。选择“退出”才会结束程序。</translation>
    </message>
    <message>
        <source>Start with the computer</source>
        <translation>随计算机启动</translation>
    </message>
    <message>
        <source>Starts in the tray, or as a minimised window if there is no tray.</source>
        <translation>启动到托盘；没有托盘时，启动为最小化的窗口。</translation>
    </message>
    <message>
        <source>Keys for a quick question</source>
        <translation>快速提问的按键</translation>
    </message>
    <message>
        <source>Open its small window while another program is in front. Press the keys here; Backspace removes them.</source>
        <translation>在其他程序位于前台时打开其小窗口。请在此处按键；退格键将其移除。</translation>
    </message>
    <message>
        <source>Tool rounds</source>
        <translation>工具轮数</translation>
    </message>
    <message>
        <source>How often the model may call tools before it must stop.</source>
        <translation>模型最多可调用工具多少次，之后必须停止。</translation>
    </message>
    <message>
        <source>Titles of conversations</source>
        <translation>对话标题</translation>
    </message>
    <message>
        <source>Model: a model writes the title after the first answer, at the cost of a small request. Local: the title is the first words.</source>
        <translation>模型：由模型在首次回答后撰写标题，需要一次小请求。本地：以开头的几个词作为标题。</translation>
    </message>
    <message>
        <source>Model</source>
        <translation>模型</translation>
    </message>
    <message>
        <source>Local</source>
        <translation>本地</translation>
    </message>
    <message>
        <source>Model for titles</source>
        <translation>用于标题的模型</translation>
    </message>
    <message>
        <source>Name of the model. It is used if the conversation&apos;s server has it. If this is empty, the conversation&apos;s own model is used.</source>
        <translation>模型的名称；在对话的服务器有该模型时使用。留空：使用对话自己的模型。</translation>
    </message>
    <message>
        <source>Instructions</source>
        <translation>指令</translation>
    </message>
    <message>
        <source>System prompt of every conversation that has none of its own.</source>
        <translation>没有自己系统提示词的每个对话的系统提示词。</translation>
    </message>
    <message>
        <source>Spelling</source>
        <translation>拼写</translation>
    </message>
    <message>
        <source>Check spelling</source>
        <translation>检查拼写</translation>
    </message>
    <message>
        <source>Underlines misspelled words in your message. The context menu of a word offers corrections.</source>
        <translation>给消息中拼写错误的词加下划线。词的右键菜单提供更正建议。</translation>
    </message>
    <message>
        <source>Languages of your messages</source>
        <translation>消息的语言</translation>
    </message>
    <message>
        <source>A word is right if it is right in one of these languages. If you choose none, the language of your system is used.</source>
        <translation>只要其中一种语言有这个词，它就是正确的。如果一种也不选，则使用系统语言。</translation>
    </message>
    <message>
        <source>Your own words</source>
        <translation>您自己的词</translation>
    </message>
    <message>
        <source>Words that you added to the dictionary, separated by spaces or line breaks.</source>
        <translation>您添加到词典的词，用空格或换行分隔。</translation>
    </message>
    <message>
        <source>Models</source>
        <translation>模型</translation>
    </message>
    <message>
        <source>Reasoning of new conversations</source>
        <translation>新对话的推理</translation>
    </message>
    <message>
        <source>How hard a model reasons before it answers. Default leaves it to the model.</source>
        <translation>模型在回答前推理的深度。“默认”由模型决定。</translation>
    </message>
    <message>
        <source>Default</source>
        <translation>默认</translation>
    </message>
    <message>
        <source>Off</source>
        <translation>关闭</translation>
    </message>
    <message>
        <source>Low</source>
        <translation>低</translation>
    </message>
    <message>
        <source>High</source>
        <translation>高</translation>
    </message>
    <message>
        <source>Show summaries of reasoning</source>
        <translation>显示推理摘要</translation>
    </message>
    <message>
        <source>Asks for summaries if a server sends none by itself. Some servers then answer a little later.</source>
        <translation>在服务器不主动发送摘要时请求摘要。这样某些服务器会稍晚回答。</translation>
    </message>
    <message>
        <source>Prompt caching</source>
        <translation>提示词缓存</translation>
    </message>
    <message>
        <source>Servers may keep the conversation for a while, so that the next question costs less.</source>
        <translation>服务器可将对话保留一段时间，使下一个问题花费更少。</translation>
    </message>
    <message>
        <source>Cache lifetime</source>
        <translation>缓存有效期</translation>
    </message>
    <message>
        <source>Short is a few minutes. Long is about an hour; writing to the cache then costs more.</source>
        <translation>“短”为几分钟；“长”约一小时，写入时花费更多。</translation>
    </message>
    <message>
        <source>Short</source>
        <translation>短</translation>
    </message>
    <message>
        <source>Long</source>
        <translation>长</translation>
    </message>
    <message>
        <source>Network</source>
        <translation>网络</translation>
    </message>
    <message>
        <source>Connection</source>
        <translation>连接</translation>
    </message>
    <message>
        <source>How long to wait for a connection.</source>
        <translation>等待连接的时间。</translation>
    </message>
    <message>
        <source>s</source>
        <translation>秒</translation>
    </message>
    <message>
        <source>Beginning of an answer</source>
        <translation>回答开始</translation>
    </message>
    <message>
        <source>How long a server may take to begin its answer. Automatic (0) is 120 seconds, or 900 where the server is on this computer or in a private network, or the model reasons.</source>
        <translation>服务器开始回答前最多可用的时间。自动 (0) 为 120 秒；如果服务器在此计算机或专用网络中，或模型在推理，则为 900 秒。</translation>
    </message>
    <message>
        <source>Automatic</source>
        <translation>自动</translation>
    </message>
    <message>
        <source>First words</source>
        <translation>首批文字</translation>
    </message>
    <message>
        <source>The longest silence between the beginning of an answer and its first words. Automatic (0) is 300 seconds, or 900 in the same cases.</source>
        <translation>从回答开始到首批文字之间最长的静默时间。自动 (0) 为 300 秒，在上述情况下为 900 秒。</translation>
    </message>
    <message>
        <source>Silence</source>
        <translation>静默</translation>
    </message>
    <message>
        <source>The longest silence in an answer after its first words.</source>
        <translation>回答开头之后最长的静默时间。</translation>
    </message>
    <message>
        <source>Private hosts</source>
        <translation>专用主机</translation>
    </message>
    <message>
        <source>Hosts on this computer or in a private network whose pages the model may ask for, and which commands may reach by a public name, separated by spaces. Others are refused.</source>
        <translation>此计算机上或专用网络中的主机：模型可请求其页面，命令可通过公共名称访问，以空格分隔。其他主机会被拒绝。</translation>
    </message>
    <message>
        <source>Check for new versions</source>
        <translation>检查新版本</translation>
    </message>
    <message>
        <source>Asks once a day whether there is a newer version, and says so. Nothing is downloaded.</source>
        <translation>每天询问一次是否有新版本，有则提示。不会下载任何内容。</translation>
    </message>
    <message>
        <source>Providers</source>
        <translation>提供商</translation>
    </message>
    <message>
        <source>Server</source>
        <translation>服务器</translation>
    </message>
    <message>
        <source>The server in use.</source>
        <translation>正在使用的服务器。</translation>
    </message>
    <message>
        <source>The model in use.</source>
        <translation>正在使用的模型。</translation>
    </message>
    <message>
        <source>Unload after</source>
        <translation>多久后卸载</translation>
    </message>
    <message>
        <source>A model that is not used for this long is removed from memory. The next message loads it again.</source>
        <translation>这么久未使用的模型会从内存中移除。下一条消息会重新加载它。</translation>
    </message>
    <message>
        <source>min</source>
        <translation>分钟</translation>
    </message>
    <message>
        <source>Never</source>
        <translation>从不</translation>
    </message>
    <message>
        <source>Context</source>
        <translation>上下文</translation>
    </message>
    <message>
        <source>How many tokens a model file can read at once. More needs more memory. The model&apos;s own limit applies too.</source>
        <translation>模型文件一次可读取的 token 数。越多占用内存越多。模型自身的上限同样适用。</translation>
    </message>
    <message>
        <source>tokens</source>
        <translation>token</translation>
    </message>
    <message>
        <source>Modes</source>
        <translation>模式</translation>
    </message>
    <message>
        <source>Specialists</source>
        <translation>专家</translation>
    </message>
    <message>
        <source>Mcp</source>
        <translation>MCP</translation>
    </message>
    <message>
        <source>Shortcuts</source>
        <translation>快捷键</translation>
    </message>
    <message>
        <source>Keyboard shortcuts</source>
        <translation>键盘快捷键</translation>
    </message>
    <message>
        <source>Keys by the name of the action; empty for no keys.</source>
        <translation>按操作名称列出的按键；留空表示没有按键。</translation>
    </message>
    <message>
        <source>Storage</source>
        <translation>存储</translation>
    </message>
    <message>
        <source>Automatic backups</source>
        <translation>自动备份</translation>
    </message>
    <message>
        <source>Written when the program is idle, if there are new messages. Each picture is stored only once.</source>
        <translation>在程序空闲且有新消息时写入。每张图片只存储一次。</translation>
    </message>
    <message>
        <source>Daily</source>
        <translation>每天</translation>
    </message>
    <message>
        <source>Weekly</source>
        <translation>每周</translation>
    </message>
    <message>
        <source>Automatic backups to keep</source>
        <translation>保留的自动备份数</translation>
    </message>
    <message>
        <source>Older automatic backups are deleted. Backups that you made yourself stay.</source>
        <translation>更早的自动备份会被删除。您手动创建的备份会保留。</translation>
    </message>
    <message>
        <source>Folder for backups</source>
        <translation>备份文件夹</translation>
    </message>
    <message>
        <source>Backups on another disk survive if this disk fails. If this is empty, they are in the folder “backups” in the data folder.</source>
        <translation>放在另一块磁盘上的备份在此磁盘损坏时仍可使用。留空则为数据文件夹中的“backups”文件夹。</translation>
    </message>
    <message>
        <source>Usage</source>
        <translation>用量</translation>
    </message>
    <message>
        <source>Dollars for a day</source>
        <translation>每日美元</translation>
    </message>
    <message>
        <source>US dollars. At 80 % you are warned; at 100 % no model is asked any more.</source>
        <translation>美元。达到 80% 时会提醒您；达到 100% 时不再询问任何模型。</translation>
    </message>
    <message>
        <source>No budget</source>
        <translation>无预算</translation>
    </message>
    <message>
        <source>Dollars for a month</source>
        <translation>每月美元</translation>
    </message>
    <message>
        <source>US dollars from the first of the month on.</source>
        <translation>从当月 1 日起的美元。</translation>
    </message>
    <message>
        <source>Tokens for a day</source>
        <translation>每日 token</translation>
    </message>
    <message>
        <source>Input and output together. This budget also works for models without a price.</source>
        <translation>输入和输出的总和。此预算对没有价格的模型同样有效。</translation>
    </message>
    <message>
        <source>Tokens for a month</source>
        <translation>每月 token</translation>
    </message>
    <message>
        <source>From the first of the month on.</source>
        <translation>从当月 1 日起。</translation>
    </message>
    <message>
        <source>Histories</source>
        <translation>历史记录</translation>
    </message>
    <message>
        <source>Offer programs</source>
        <translation>提示其他程序</translation>
    </message>
    <message>
        <source>Asks once when conversations of another program are found.</source>
        <translation>在找到其他程序的对话时询问一次。</translation>
    </message>
    <message>
        <source>Temperature</source>
        <translation>温度</translation>
    </message>
    <message>
        <source>From 0, the most predictable, to 2, the most varied.</source>
        <translation>从 0（最可预测）到 2（最多变）。</translation>
    </message>
    <message>
        <source>The server&apos;s default</source>
        <translation>服务器默认值</translation>
    </message>
    <message>
        <source>Top-p</source>
        <translation>Top-p</translation>
    </message>
    <message>
        <source>Only the likeliest words that together reach this share, from 0 to 1.</source>
        <translation>只取累计达到此比例的最可能的词，从 0 到 1。</translation>
    </message>
    <message>
        <source>Maximum tokens</source>
        <translation>最大 token 数</translation>
    </message>
    <message>
        <source>The longest answer. One that reaches it is cut, and can be continued.</source>
        <translation>回答的最大长度。达到上限的回答会被截断，可以继续。</translation>
    </message>
    <message>
        <source>System prompt</source>
        <translation>系统提示词</translation>
    </message>
    <message>
        <source>Sent to the model before everything else. If this is empty, the instructions in the settings are used.</source>
        <translation>在其他所有内容之前发送给模型。如果留空，则使用设置中的指令。</translation>
    </message>
</context>
<context>
    <name>PreviewView</name>
    <message>
        <source>Updating the preview for the edited arguments…</source>
        <translation>正在为编辑后的参数更新预览…</translation>
    </message>
    <message>
        <source>The edited arguments cannot be used yet; this is the last preview.</source>
        <translation>编辑后的参数尚不可用；这是上一次的预览。</translation>
    </message>
</context>
<context>
    <name>PriceSettings</name>
    <message>
        <source>Filter by server or model</source>
        <translation>按服务器或模型筛选</translation>
    </message>
    <message>
        <source>Models are listed here when a server is connected.</source>
        <translation>连接服务器后，模型会列在这里。</translation>
    </message>
    <message>
        <source>Reset</source>
        <translation>重置</translation>
    </message>
    <message>
        <source>Reset to the original price</source>
        <translation>重置为原始价格</translation>
    </message>
    <message>
        <source>Filter prices</source>
        <translation>筛选价格</translation>
    </message>
    <message>
        <source>Prices</source>
        <translation>价格</translation>
    </message>
    <message>
        <source>US dollars per million tokens. Costs are calculated with these prices. Your changes are shown in bold and kept in “models.toml” in the data folder.</source>
        <translation>每百万 token 的价格（美元）。费用据此计算。您的更改保存在数据文件夹的“models.toml”中，并以粗体显示。</translation>
    </message>
</context>
<context>
    <name>PriceTableModel</name>
    <message>
        <source>Server</source>
        <translation>服务器</translation>
    </message>
    <message>
        <source>Model</source>
        <translation>模型</translation>
    </message>
    <message>
        <source>In</source>
        <translation>输入</translation>
    </message>
    <message>
        <source>Out</source>
        <translation>输出</translation>
    </message>
    <message>
        <source>Cache read</source>
        <translation>缓存读取</translation>
    </message>
    <message>
        <source>Cache write</source>
        <translation>缓存写入</translation>
    </message>
    <message>
        <source>not known</source>
        <translation>未知</translation>
    </message>
    <message>
        <source>{0}: {1}, changed by you</source>
        <translation>{0}：{1}，由您更改</translation>
    </message>
</context>
<context>
    <name>PromptArgumentsDialog</name>
    <message>
        <source>Insert</source>
        <translation>插入</translation>
    </message>
    <message>
        <source>Still needed: {0}</source>
        <translation>还需要：{0}</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>取消</translation>
    </message>
</context>
<context>
    <name>PromptEdit</name>
    <message>
        <source>Editing an earlier message</source>
        <translation>正在编辑较早的消息</translation>
    </message>
    <message>
        <source>Cancel editing</source>
        <translation>取消编辑</translation>
    </message>
</context>
<context>
    <name>ProviderSettings</name>
    <message>
        <source>No server is connected yet.</source>
        <translation>尚未连接任何服务器。</translation>
    </message>
    <message>
        <source>Connect a model…</source>
        <translation>连接模型…</translation>
    </message>
    <message>
        <source>Run a model file…</source>
        <translation>运行模型文件…</translation>
    </message>
    <message>
        <source>Keys are kept in your system&apos;s keyring ({0}).</source>
        <translation>密钥保存在您系统的密钥环中（{0}）。</translation>
    </message>
    <message>
        <source>A key can be held in memory until the program is closed.</source>
        <translation>密钥可保留在内存中，直到程序关闭。</translation>
    </message>
</context>
<context>
    <name>QuestionCard</name>
    <message>
        <source>Answer</source>
        <translation>回答</translation>
    </message>
    <message>
        <source>Skip</source>
        <translation>跳过</translation>
    </message>
    <message>
        <source>The agent asks: {0}</source>
        <translation>智能体提问：{0}</translation>
    </message>
    <message>
        <source>The agent asks (1 more waits)</source>
        <translation>智能体提问（还有 1 个在等待）</translation>
    </message>
    <message>
        <source>The agent asks</source>
        <translation>智能体提问</translation>
    </message>
    <message numerus="yes">
        <source>The agent asks (%n more wait)</source>
        <translation>
            <numerusform>智能体提问（还有 %n 个在等待）</numerusform>
        </translation>
    </message>
    <message>
        <source>To answer with the keyboard, press {0}.</source>
        <translation>要用键盘回答，请按 {0}。</translation>
    </message>
    <message>
        <source>Press a number to choose, Enter to answer.</source>
        <translation>按数字选择，按 Enter 回答。</translation>
    </message>
    <message>
        <source>Press Enter to answer.</source>
        <translation>按 Enter 回答。</translation>
    </message>
    <message>
        <source>Question of the agent</source>
        <translation>智能体的提问</translation>
    </message>
    <message>
        <source>The agent goes on without an answer.</source>
        <translation>智能体在没有回答的情况下继续。</translation>
    </message>
</context>
<context>
    <name>QueuedMessageControls</name>
    <message>
        <source>Send earlier</source>
        <translation>提前发送</translation>
    </message>
    <message>
        <source>Send later</source>
        <translation>推后发送</translation>
    </message>
    <message>
        <source>Edit</source>
        <translation>编辑</translation>
    </message>
    <message>
        <source>Remove</source>
        <translation>移除</translation>
    </message>
    <message>
        <source>Change this message</source>
        <translation>更改此消息</translation>
    </message>
    <message>
        <source>Sent: {0}. Press to change it to: {1}</source>
        <translation>发送时机：{0}。按下可改为：{1}</translation>
    </message>
    <message>
        <source>Change to: {0}</source>
        <translation>改为：{0}</translation>
    </message>
    <message>
        <source>Pictures: {0}</source>
        <translation>图片：{0}</translation>
    </message>
    <message>
        <source>Soon</source>
        <translation>尽快</translation>
    </message>
    <message>
        <source>When done</source>
        <translation>完成后</translation>
    </message>
    <message>
        <source>As soon as possible</source>
        <translation>尽快</translation>
    </message>
    <message>
        <source>When the agent is done</source>
        <translation>智能体完成后</translation>
    </message>
</context>
<context>
    <name>QueuedMessageRow</name>
    <message>
        <source>Only pictures</source>
        <translation>只有图片</translation>
    </message>
    <message>
        <source>Waiting message: {0}</source>
        <translation>等待中的消息：{0}</translation>
    </message>
    <message>
        <source>Text of the waiting message</source>
        <translation>等待中的消息的文本</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>取消</translation>
    </message>
    <message>
        <source>Save</source>
        <translation>保存</translation>
    </message>
</context>
<context>
    <name>QuickAsk</name>
    <message>
        <source>Quick question</source>
        <translation>快速提问</translation>
    </message>
    <message>
        <source>Attach the clipboard</source>
        <translation>附加剪贴板内容</translation>
    </message>
    <message>
        <source>Attach a screenshot</source>
        <translation>附加屏幕截图</translation>
    </message>
    <message>
        <source>Screenshot</source>
        <translation>屏幕截图</translation>
    </message>
</context>
<context>
    <name>QuickAskKeys</name>
    <message>
        <source>Your desktop calls these keys {0}.</source>
        <translation>您的桌面将这些按键称为 {0}。</translation>
    </message>
</context>
<context>
    <name>ReasonNote</name>
    <message>
        <source>Outside content from: {0}</source>
        <translation>外部内容来自：{0}</translation>
    </message>
    <message>
        <source>Trust {0} in this conversation</source>
        <translation>在此对话中信任 {0}</translation>
    </message>
    <message>
        <source>these sources</source>
        <translation>这些来源</translation>
    </message>
</context>
<context>
    <name>Reasoning</name>
    <message>
        <source>Default</source>
        <translation>默认</translation>
    </message>
    <message>
        <source>Off</source>
        <translation>关闭</translation>
    </message>
    <message>
        <source>Between tools</source>
        <translation>工具之间</translation>
    </message>
    <message>
        <source>Adaptive</source>
        <translation>自适应</translation>
    </message>
    <message>
        <source>Up to {0} tokens</source>
        <translation>最多 {0} 个 token</translation>
    </message>
    <message>
        <source>Minimal</source>
        <translation>极低</translation>
    </message>
    <message>
        <source>Low</source>
        <translation>低</translation>
    </message>
    <message>
        <source>Medium</source>
        <translation>中</translation>
    </message>
    <message>
        <source>High</source>
        <translation>高</translation>
    </message>
    <message>
        <source>Very high</source>
        <translation>很高</translation>
    </message>
    <message>
        <source>Maximum</source>
        <translation>最高</translation>
    </message>
</context>
<context>
    <name>ReasoningPicker</name>
    <message>
        <source>Reasoning</source>
        <translation>推理</translation>
    </message>
    <message>
        <source>Reasoning: {0}</source>
        <translation>推理：{0}</translation>
    </message>
</context>
<context>
    <name>RequestNotifier</name>
    <message>
        <source>Show</source>
        <translation>显示</translation>
    </message>
    <message>
        <source>A question waits for your answer.</source>
        <translation>有问题正在等待您的回答。</translation>
    </message>
    <message>
        <source>The server says</source>
        <translation>服务器说</translation>
    </message>
    <message>
        <source>In the conversation “{0}”</source>
        <translation>在对话“{0}”中</translation>
    </message>
</context>
<context>
    <name>RuleCard</name>
    <message>
        <source>Revoke this rule? Other rules, or the mode, decide about such calls from then on.</source>
        <translation>撤销此规则？此后由其他规则或模式决定此类调用。</translation>
    </message>
    <message>
        <source>Revoke</source>
        <translation>撤销授权</translation>
    </message>
    <message>
        <source>Revoke the rule: {0}</source>
        <translation>撤销规则：{0}</translation>
    </message>
    <message>
        <source>Keep</source>
        <translation>保留</translation>
    </message>
    <message>
        <source>Keep the rule: {0}</source>
        <translation>保留规则：{0}</translation>
    </message>
    <message>
        <source>Really revoke the rule: {0}</source>
        <translation>确认撤销规则：{0}</translation>
    </message>
    <message>
        <source>Everywhere</source>
        <translation>所有位置</translation>
    </message>
    <message>
        <source>Only in the folder {0}</source>
        <translation>仅在文件夹 {0} 中</translation>
    </message>
    <message>
        <source>Only in one conversation</source>
        <translation>仅在一个对话中</translation>
    </message>
    <message>
        <source>you</source>
        <translation>您</translation>
    </message>
    <message>
        <source>Made by {0}, {1}</source>
        <translation>由{0}创建，{1}</translation>
    </message>
    <message>
        <source>never used</source>
        <translation>从未使用</translation>
    </message>
    <message>
        <source>last used {0}</source>
        <translation>上次使用：{0}</translation>
    </message>
    <message>
        <source>holds until {0}</source>
        <translation>有效期至 {0}</translation>
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
        <translation>虽然此对话不保存，但规则会保存。</translation>
    </message>
    <message>
        <source>Allow and keep this rule</source>
        <translation>允许并保留此规则</translation>
    </message>
    <message>
        <source>Allows the least</source>
        <translation>允许范围最小</translation>
    </message>
    <message>
        <source>In every conversation</source>
        <translation>在每个对话中</translation>
    </message>
    <message>
        <source>Only in conversations of the folder {0}</source>
        <translation>仅在文件夹 {0} 的对话中</translation>
    </message>
    <message>
        <source>Rules can be revoked in the settings.</source>
        <translation>规则可在设置中撤销。</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>取消</translation>
    </message>
    <message>
        <source>From now on allow without asking:</source>
        <translation>从现在起不询问即允许：</translation>
    </message>
</context>
<context>
    <name>RuleEditor</name>
    <message>
        <source>Add rule</source>
        <translation>添加规则</translation>
    </message>
    <message>
        <source>Change rule</source>
        <translation>更改规则</translation>
    </message>
    <message>
        <source>The server of this tool is not running, so it is not known what the rule would allow. Open a conversation that uses the server, or choose Ask.</source>
        <translation>此工具的服务器未运行，因此不知道规则会允许什么。请打开使用该服务器的对话，或选择“询问”。</translation>
    </message>
    <message>
        <source>Decision about the calls</source>
        <translation>如何处理这些调用</translation>
    </message>
    <message>
        <source>Tool</source>
        <translation>工具</translation>
    </message>
    <message>
        <source>Applies to</source>
        <translation>适用于</translation>
    </message>
    <message>
        <source>Folder, host or command</source>
        <translation>文件夹、主机或命令</translation>
    </message>
    <message>
        <source>Rule editor</source>
        <translation>规则编辑器</translation>
    </message>
    <message>
        <source>Cancel rule</source>
        <translation>取消规则</translation>
    </message>
</context>
<context>
    <name>RuleListEditor</name>
    <message>
        <source>Add rule…</source>
        <translation>添加规则…</translation>
    </message>
    <message>
        <source>Remove the rule: {0}</source>
        <translation>移除规则：{0}</translation>
    </message>
    <message>
        <source>Remove</source>
        <translation>移除</translation>
    </message>
    <message>
        <source>Change the rule: {0}</source>
        <translation>更改规则：{0}</translation>
    </message>
    <message>
        <source>Change</source>
        <translation>更改</translation>
    </message>
</context>
<context>
    <name>RuleSettings</name>
    <message>
        <source>There are no rules. To make one, choose “Always allow…” when you are asked about a call.</source>
        <translation>没有规则。要创建规则，请在被询问某个调用时选择“始终允许…”。</translation>
    </message>
    <message>
        <source>Rules decide about calls before the mode does. Denied calls never run. Allowed calls run without asking, unless content from outside came into the conversation.</source>
        <translation>规则先于模式对调用作出决定。被拒绝的调用从不运行。被允许的调用不询问就运行，除非有外部内容进入了对话。</translation>
    </message>
    <message>
        <source>Try a call</source>
        <translation>试一个调用</translation>
    </message>
    <message>
        <source>Saved rules</source>
        <translation>长期规则</translation>
    </message>
    <message>
        <source>Show older rules ({0})</source>
        <translation>显示更早的规则（{0}）</translation>
    </message>
</context>
<context>
    <name>Rules</name>
    <message>
        <source>Allow</source>
        <translation>允许</translation>
    </message>
    <message>
        <source>Ask</source>
        <translation>询问</translation>
    </message>
    <message>
        <source>Deny</source>
        <translation>拒绝</translation>
    </message>
</context>
<context>
    <name>Sampling</name>
    <message>
        <source>No model is chosen to answer.</source>
        <translation>没有选择可以回答的模型。</translation>
    </message>
    <message>
        <source>Deny this, choose a model, and let the server ask again.</source>
        <translation>请先拒绝，选择一个模型，再让服务器重新请求。</translation>
    </message>
    <message>
        <source>{0} on {1} would answer</source>
        <translation>将由 {1} 上的 {0} 回答</translation>
    </message>
    <message>
        <source>{0} answered</source>
        <translation>{0} 已回答</translation>
    </message>
    <message>
        <source>It cost {0}.</source>
        <translation>花费 {0}。</translation>
    </message>
    <message>
        <source>The answer was cut off before its end.</source>
        <translation>回答在结束前被截断。</translation>
    </message>
    <message>
        <source>Nothing has been sent to the server yet.</source>
        <translation>尚无任何内容发送给服务器。</translation>
    </message>
    <message>
        <source>The answer has at most {0} tokens; no tools are used.</source>
        <translation>回答最多 {0} 个 token；不使用工具。</translation>
    </message>
    <message>
        <source>The answer has at most {0} tokens, and may ask the server to use tools of its own.</source>
        <translation>回答最多 {0} 个 token，并可请求服务器使用其自己的工具。</translation>
    </message>
    <message>
        <source>The cost is not known.</source>
        <translation>费用未知。</translation>
    </message>
    <message>
        <source>It costs about {0} at most ({1} in and {2} out per million tokens).</source>
        <translation>最多约花费 {0}（每百万 token 输入 {1}，输出 {2}）。</translation>
    </message>
</context>
<context>
    <name>SamplingView</name>
    <message>
        <source>The server&apos;s instructions to the model</source>
        <translation>服务器给模型的指令</translation>
    </message>
    <message>
        <source>The server&apos;s tool “{0}”, which the model may call</source>
        <translation>服务器的工具“{0}”，模型可以调用</translation>
    </message>
    <message>
        <source>The model&apos;s answer</source>
        <translation>模型的回答</translation>
    </message>
    <message>
        <source>The model calls the server&apos;s tool “{0}”</source>
        <translation>模型调用服务器的工具“{0}”</translation>
    </message>
    <message>
        <source>The server asks</source>
        <translation>服务器的提问</translation>
    </message>
    <message>
        <source>Answer of a model, according to the server</source>
        <translation>模型的回答（据服务器称）</translation>
    </message>
    <message>
        <source>Call of “{0}” by a model, according to the server</source>
        <translation>模型对“{0}”的调用（据服务器称）</translation>
    </message>
    <message>
        <source>Error of “{0}”, according to the server</source>
        <translation>“{0}”的错误（据服务器称）</translation>
    </message>
    <message>
        <source>Result of “{0}”, according to the server</source>
        <translation>“{0}”的结果（据服务器称）</translation>
    </message>
</context>
<context>
    <name>ScheduleCard</name>
    <message>
        <source>Scheduled prompt {0}</source>
        <translation>定时提示词 {0}</translation>
    </message>
    <message>
        <source>Keep</source>
        <translation>保留</translation>
    </message>
    <message>
        <source>Keep {0}</source>
        <translation>保留 {0}</translation>
    </message>
    <message>
        <source>Delete</source>
        <translation>删除</translation>
    </message>
    <message>
        <source>Really delete {0}</source>
        <translation>确认删除 {0}</translation>
    </message>
    <message>
        <source>Delete “{0}”? Its conversations stay.</source>
        <translation>删除“{0}”？其对话会保留。</translation>
    </message>
    <message>
        <source>Run now</source>
        <translation>立即运行</translation>
    </message>
    <message>
        <source>Run {0} now</source>
        <translation>立即运行 {0}</translation>
    </message>
    <message>
        <source>Resume</source>
        <translation>继续</translation>
    </message>
    <message>
        <source>Resume {0}</source>
        <translation>继续 {0}</translation>
    </message>
    <message>
        <source>Pause</source>
        <translation>暂停</translation>
    </message>
    <message>
        <source>Pause {0}</source>
        <translation>暂停 {0}</translation>
    </message>
    <message>
        <source>Edit</source>
        <translation>编辑</translation>
    </message>
    <message>
        <source>Edit {0}</source>
        <translation>编辑 {0}</translation>
    </message>
    <message>
        <source>Open the conversation of {0}</source>
        <translation>打开 {0} 的对话</translation>
    </message>
    <message>
        <source>Open conversation</source>
        <translation>打开对话</translation>
    </message>
    <message>
        <source>Usage and budgets</source>
        <translation>用量和预算</translation>
    </message>
    <message>
        <source>Delete…</source>
        <translation>删除…</translation>
    </message>
    <message>
        <source>Delete {0}</source>
        <translation>删除 {0}</translation>
    </message>
    <message>
        <source>{0}. Paused.</source>
        <translation>{0}。已暂停。</translation>
    </message>
    <message>
        <source>{0}. No more runs.</source>
        <translation>{0}。不再运行。</translation>
    </message>
    <message>
        <source>{0}. Next: {1}</source>
        <translation>{0}。下次：{1}</translation>
    </message>
    <message>
        <source>It has not run yet.</source>
        <translation>尚未运行过。</translation>
    </message>
    <message>
        <source>Waiting for your approval since {0}. The next run begins after this one has ended.</source>
        <translation>自 {0} 起等待您的批准。本次结束后才会开始下一次运行。</translation>
    </message>
    <message>
        <source>Running since {0}.</source>
        <translation>自 {0} 起运行中。</translation>
    </message>
    <message>
        <source>Last run: {0}, {1}</source>
        <translation>上次运行：{0}，{1}</translation>
    </message>
    <message>
        <source>{0} Runs that are due until then are skipped. Raise the budget to continue sooner.</source>
        <translation>{0}在此期间到点的运行会被跳过。提高预算即可提前继续。</translation>
    </message>
    <message>
        <source>{0} One run waits until there is budget again. Raise the budget to continue sooner.</source>
        <translation>{0}有一次运行正在等待，预算恢复后开始。提高预算即可提前继续。</translation>
    </message>
</context>
<context>
    <name>ScheduleDialog</name>
    <message>
        <source>Close</source>
        <translation>关闭</translation>
    </message>
    <message>
        <source>Scheduled prompts run only while Desktop Agent runs.</source>
        <translation>定时提示词仅在 Desktop Agent 运行时执行。</translation>
    </message>
    <message>
        <source>Close to the tray: the program keeps running when you close the window</source>
        <translation>关闭到托盘：关闭窗口后程序继续运行</translation>
    </message>
    <message>
        <source>Scheduled prompts</source>
        <translation>定时提示词</translation>
    </message>
</context>
<context>
    <name>ScheduleEditor</name>
    <message>
        <source>Scheduled prompt editor</source>
        <translation>定时提示词编辑器</translation>
    </message>
    <message>
        <source>{0} (not listed)</source>
        <translation>{0}（未列出）</translation>
    </message>
    <message>
        <source>The prompt has more than {0} characters. Shorten it.</source>
        <translation>提示词超过了 {0} 个字符。请缩短。</translation>
    </message>
    <message>
        <source>There is nothing to send yet. Write the prompt.</source>
        <translation>还没有可发送的内容。请写下提示词。</translation>
    </message>
    <message>
        <source>As in new conversations</source>
        <translation>与新对话相同</translation>
    </message>
    <message>
        <source>A scheduled prompt needs a name. Write one.</source>
        <translation>定时提示词需要名称。请输入一个。</translation>
    </message>
    <message>
        <source>Name</source>
        <translation>名称</translation>
    </message>
    <message>
        <source>Prompt</source>
        <translation>提示词</translation>
    </message>
    <message>
        <source>When</source>
        <translation>时间</translation>
    </message>
    <message>
        <source>Workspace folder</source>
        <translation>工作文件夹</translation>
    </message>
    <message>
        <source>Browse…</source>
        <translation>浏览…</translation>
    </message>
    <message>
        <source>Model</source>
        <translation>模型</translation>
    </message>
    <message>
        <source>{0} (removed)</source>
        <translation>{0}（已移除）</translation>
    </message>
    <message>
        <source>Calls that need your approval wait for you in “Waiting approvals”.</source>
        <translation>需要您批准的调用会在“待批准”中等您处理。</translation>
    </message>
    <message>
        <source>Mode</source>
        <translation>模式</translation>
    </message>
    <message>
        <source>Each run begins a new conversation</source>
        <translation>每次运行开始一个新对话</translation>
    </message>
    <message>
        <source>All runs go on in one conversation</source>
        <translation>所有运行在同一个对话中继续</translation>
    </message>
    <message>
        <source>Conversation</source>
        <translation>对话</translation>
    </message>
    <message>
        <source>Run once at the next start of the program</source>
        <translation>下次启动程序时补运行一次</translation>
    </message>
    <message>
        <source>Skip what was missed</source>
        <translation>跳过错过的运行</translation>
    </message>
    <message>
        <source>If the program is not running at that time</source>
        <translation>如果到时程序没有运行</translation>
    </message>
</context>
<context>
    <name>ScheduleForm</name>
    <message>
        <source>Add scheduled prompt…</source>
        <translation>添加定时提示词…</translation>
    </message>
    <message>
        <source>Nothing is scheduled. A scheduled prompt is sent automatically, once or repeatedly.</source>
        <translation>尚无定时任务。定时提示词会自动发送，一次或重复。</translation>
    </message>
</context>
<context>
    <name>ScheduleNotifier</name>
    <message>
        <source>{0} They continue when there is budget again.</source>
        <translation>{0}预算恢复后会继续运行。</translation>
    </message>
    <message>
        <source>Scheduled prompts wait</source>
        <translation>定时提示词正在等待</translation>
    </message>
</context>
<context>
    <name>ScheduleWords</name>
    <message>
        <source>Once, {0}</source>
        <translation>一次，{0}</translation>
    </message>
    <message>
        <source>On the last day of every month at {0}</source>
        <translation>每月最后一天 {0}</translation>
    </message>
    <message>
        <source>On day {0} of every month at {1}</source>
        <translation>每月 {0} 日 {1}</translation>
    </message>
    <message>
        <source>By the cron line {0}</source>
        <translation>按 cron 表达式 {0}</translation>
    </message>
    <message>
        <source>dddd, d MMMM</source>
        <translation>M月d日dddd</translation>
    </message>
    <message>
        <source>dddd, d MMMM yyyy</source>
        <translation>yyyy年M月d日dddd</translation>
    </message>
    <message>
        <source>{0}, {1}</source>
        <translation>{0} {1}</translation>
    </message>
    <message>
        <source>done</source>
        <translation>已完成</translation>
    </message>
    <message>
        <source>failed</source>
        <translation>失败</translation>
    </message>
    <message>
        <source>stopped at a limit</source>
        <translation>达到上限而停止</translation>
    </message>
    <message>
        <source>stopped</source>
        <translation>已停止</translation>
    </message>
    <message>
        <source>interrupted when the program ended</source>
        <translation>因程序结束而中断</translation>
    </message>
    <message>
        <source>could not begin</source>
        <translation>无法开始</translation>
    </message>
    <message>
        <source>missed, and skipped</source>
        <translation>错过并已跳过</translation>
    </message>
    <message>
        <source>ended</source>
        <translation>已结束</translation>
    </message>
    <message>
        <source>Every day at {0}</source>
        <translation>每天 {0}</translation>
    </message>
    <message>
        <source>Every weekday at {0}</source>
        <translation>每个工作日 {0}</translation>
    </message>
    <message>
        <source>Every {0} at {1}</source>
        <translation>每{0} {1}</translation>
    </message>
    <message>
        <source>Every 24 hours</source>
        <translation>每 24 小时</translation>
    </message>
    <message>
        <source>Every {0} days, exactly</source>
        <translation>每 {0} 天，精确到分钟</translation>
    </message>
    <message>
        <source>Every hour</source>
        <translation>每小时</translation>
    </message>
    <message>
        <source>Every {0} hours</source>
        <translation>每 {0} 小时</translation>
    </message>
    <message>
        <source>Every minute</source>
        <translation>每分钟</translation>
    </message>
    <message>
        <source>Every {0} minutes</source>
        <translation>每 {0} 分钟</translation>
    </message>
    <message>
        <source>{0} and {1}</source>
        <translation>{0}和{1}</translation>
    </message>
</context>
<context>
    <name>SearchFilters</name>
    <message>
        <source>Search filters</source>
        <translation>搜索筛选条件</translation>
    </message>
    <message>
        <source>Menu: {0}</source>
        <translation>菜单：{0}</translation>
    </message>
    <message>
        <source>Filters</source>
        <translation>筛选</translation>
    </message>
    <message>
        <source>Remove the filter: {0}</source>
        <translation>移除筛选条件：{0}</translation>
    </message>
    <message>
        <source>Folder</source>
        <translation>文件夹</translation>
    </message>
    <message>
        <source>Has a picture</source>
        <translation>含图片</translation>
    </message>
    <message>
        <source>Has a tool call</source>
        <translation>含工具调用</translation>
    </message>
    <message>
        <source>In written files</source>
        <translation>在写入的文件中</translation>
    </message>
    <message>
        <source>Any time</source>
        <translation>任何时间</translation>
    </message>
    <message>
        <source>Today</source>
        <translation>今天</translation>
    </message>
    <message>
        <source>Last 7 days</source>
        <translation>最近 7 天</translation>
    </message>
    <message>
        <source>Last 30 days</source>
        <translation>最近 30 天</translation>
    </message>
    <message>
        <source>This year</source>
        <translation>今年</translation>
    </message>
    <message>
        <source>Said by anybody</source>
        <translation>任何人所说</translation>
    </message>
    <message>
        <source>Said by me</source>
        <translation>我所说</translation>
    </message>
    <message>
        <source>Said by the model</source>
        <translation>模型所说</translation>
    </message>
    <message>
        <source>Any model</source>
        <translation>任何模型</translation>
    </message>
    <message>
        <source>Any tag</source>
        <translation>任何标签</translation>
    </message>
    <message>
        <source>Any workspace folder</source>
        <translation>任何工作文件夹</translation>
    </message>
    <message>
        <source>Date</source>
        <translation>日期</translation>
    </message>
    <message>
        <source>Model</source>
        <translation>模型</translation>
    </message>
    <message>
        <source>Any folder</source>
        <translation>任何文件夹</translation>
    </message>
    <message>
        <source>Any program</source>
        <translation>任何程序</translation>
    </message>
    <message>
        <source>Program</source>
        <translation>程序</translation>
    </message>
    <message>
        <source>Tag</source>
        <translation>标签</translation>
    </message>
    <message>
        <source>Workspace folder</source>
        <translation>工作文件夹</translation>
    </message>
    <message>
        <source>Said by</source>
        <translation>发言者</translation>
    </message>
</context>
<context>
    <name>SearchResults</name>
    <message>
        <source>All conversations</source>
        <translation>所有对话</translation>
    </message>
    <message>
        <source>There are more results. Add a word to see fewer.</source>
        <translation>还有更多结果。再加一个词可缩小范围。</translation>
    </message>
    <message>
        <source>Still indexing: not everything is searched yet</source>
        <translation>仍在建立索引：并非所有内容都已可搜索</translation>
    </message>
    <message>
        <source>Nothing found</source>
        <translation>未找到任何内容</translation>
    </message>
    <message>
        <source>Nothing found for “{0}”</source>
        <translation>未找到“{0}”的结果</translation>
    </message>
    <message>
        <source>Show all {0}</source>
        <translation>显示全部 {0} 个</translation>
    </message>
    <message>
        <source>Tool call</source>
        <translation>工具调用</translation>
    </message>
    <message>
        <source>File written</source>
        <translation>写入的文件</translation>
    </message>
    <message>
        <source>Attachment</source>
        <translation>附件</translation>
    </message>
    <message>
        <source>Note</source>
        <translation>提示</translation>
    </message>
    <message>
        <source>You</source>
        <translation>您</translation>
    </message>
    <message>
        <source>Assistant</source>
        <translation>助手</translation>
    </message>
</context>
<context>
    <name>SearchResultsView</name>
    <message>
        <source>Search results</source>
        <translation>搜索结果</translation>
    </message>
</context>
<context>
    <name>SendStopButton</name>
    <message>
        <source>Send</source>
        <translation>发送</translation>
    </message>
    <message>
        <source>Stopping…</source>
        <translation>正在停止…</translation>
    </message>
    <message>
        <source>Stop</source>
        <translation>停止</translation>
    </message>
    <message>
        <source>Queue the message</source>
        <translation>将消息加入队列</translation>
    </message>
    <message>
        <source>Send as soon as possible</source>
        <translation>尽快发送</translation>
    </message>
    <message>
        <source>Send when the agent is done</source>
        <translation>智能体完成后发送</translation>
    </message>
</context>
<context>
    <name>Sentence</name>
    <message>
        <source>- and {count} more</source>
        <translation>- 以及另外 {count} 个</translation>
    </message>
    <message>
        <source>A ModelRequest has its own tools.</source>
        <translation>ModelRequest 自带工具。</translation>
    </message>
    <message>
        <source>A call was not undone: {why}</source>
        <translation>某个调用未能撤销：{why}</translation>
    </message>
    <message>
        <source>A call was undone: {words}</source>
        <translation>某个调用已撤销：{words}</translation>
    </message>
    <message>
        <source>A command that nobody was asked about gets no more time than that. Let it do less at once; one that writes a file is asked about, and gets the time that it names.</source>
        <translation>未经询问的命令不会获得比这更多的时间。请让它一次少做一些；会写入文件的命令会先询问，并获得其指定的时间。</translation>
    </message>
    <message>
        <source>A conversation has no “{name}” to change.</source>
        <translation>对话没有可更改的“{name}”。</translation>
    </message>
    <message>
        <source>A cron line has five fields: minute, hour, day, month and weekday.</source>
        <translation>cron 表达式有五个字段：分、时、日、月和星期。</translation>
    </message>
    <message>
        <source>A folder cannot be moved into itself.</source>
        <translation>文件夹不能移到自身之中。</translation>
    </message>
    <message>
        <source>A folder needs a name.</source>
        <translation>文件夹需要名称。</translation>
    </message>
    <message>
        <source>A guard needs max_iterations of at least 1.</source>
        <translation>守卫的 max_iterations 至少为 1。</translation>
    </message>
    <message>
        <source>A guard would never be asked at this moment.</source>
        <translation>守卫在此时刻永远不会被询问。</translation>
    </message>
    <message>
        <source>A guard “{name}” is there already.</source>
        <translation>已有守卫“{name}”。</translation>
    </message>
    <message>
        <source>A hidden message of the service, such as its instructions, was left out.</source>
        <translation>服务的一条隐藏消息（例如其指令）已被省略。</translation>
    </message>
    <message>
        <source>A history is a list of messages, and this is none.</source>
        <translation>历史记录是消息列表，而这不是。</translation>
    </message>
    <message>
        <source>A hook wants a person to decide.</source>
        <translation>某个钩子要求由人来决定。</translation>
    </message>
    <message>
        <source>A limit was reached: {which}.</source>
        <translation>已达到限制：{which}。</translation>
    </message>
    <message>
        <source>A message by “{name}”, whom this version does not know, was left out.</source>
        <translation>“{name}”的一条消息已被省略，因为此版本无法识别该发送者。</translation>
    </message>
    <message>
        <source>A message is nested too deep.</source>
        <translation>某条消息嵌套过深。</translation>
    </message>
    <message>
        <source>A message waits to be sent.</source>
        <translation>有一条消息正在等待发送。</translation>
    </message>
    <message>
        <source>A newer version of this program wrote “{path}”.</source>
        <translation>“{path}”由本程序的较新版本写入。</translation>
    </message>
    <message>
        <source>A part of the conversation could not be written ({kind}).</source>
        <translation>对话的一部分未能写入（{kind}）。</translation>
    </message>
    <message>
        <source>A part of “{path}” is a file, not a folder.</source>
        <translation>“{path}”中的一部分是文件，而不是文件夹。</translation>
    </message>
    <message>
        <source>A picture</source>
        <translation>一张图片</translation>
    </message>
    <message>
        <source>A picture in the export is not a picture, or not of the type that it says.</source>
        <translation>导出中的某张图片不是图片，或与其声明的类型不符。</translation>
    </message>
    <message>
        <source>A picture is not in the export, or it is damaged.</source>
        <translation>某张图片不在导出中，或已损坏。</translation>
    </message>
    <message>
        <source>A picture is not in the export; its place is kept.</source>
        <translation>某张图片不在导出中；其位置已保留。</translation>
    </message>
    <message>
        <source>A picture is not in the export; its place is marked.</source>
        <translation>某张图片不在导出中；其位置已标记。</translation>
    </message>
    <message>
        <source>A picture of the export was changed or damaged.</source>
        <translation>导出中的某张图片已被更改或损坏。</translation>
    </message>
    <message>
        <source>A picture of this conversation cannot be read now: {reason}.</source>
        <translation>此对话的某张图片暂时无法读取：{reason}。</translation>
    </message>
    <message>
        <source>A picture of this conversation is missing from the data folder.</source>
        <translation>数据文件夹中缺少此对话的某张图片。</translation>
    </message>
    <message>
        <source>A picture of this conversation was changed or damaged on the disk.</source>
        <translation>磁盘上此对话的某张图片已被更改或损坏。</translation>
    </message>
    <message>
        <source>A picture was removed before it was needed.</source>
        <translation>图片在需要之前已被移除。</translation>
    </message>
    <message>
        <source>A program to run has a name, and its output a limit that is not negative.</source>
        <translation>要运行的程序需要名称，其输出限制不能为负数。</translation>
    </message>
    <message>
        <source>A prompt holds text and pictures, nothing else.</source>
        <translation>提示词只能包含文本和图片。</translation>
    </message>
    <message>
        <source>A prompt policy “{id}” is installed already.</source>
        <translation>提示词策略“{id}”已安装。</translation>
    </message>
    <message>
        <source>A property “{name}”, which this version does not know, was left out.</source>
        <translation>属性“{name}”已被省略，因为此版本无法识别它。</translation>
    </message>
    <message>
        <source>A question needs choices or must take free text.</source>
        <translation>问题需要选项，或必须接受自由文本。</translation>
    </message>
    <message>
        <source>A question that this provider refused to answer was left out, and so was the refusal.</source>
        <translation>此提供商拒绝回答的一个问题已被省略，其拒绝也一并省略。</translation>
    </message>
    <message>
        <source>A recording was left out. Its words are kept if the export has them.</source>
        <translation>一段录音已被省略；如果导出中有其文字，则予以保留。</translation>
    </message>
    <message>
        <source>A request can hold at most {count} pictures.</source>
        <translation>一个请求最多可包含 {count} 张图片。</translation>
    </message>
    <message>
        <source>A result without its call was kept as it is.</source>
        <translation>某个不存在的调用的结果已原样保留。</translation>
    </message>
    <message>
        <source>A rule made by {origin} asks about something that this call may do. It is not certain whether it does.</source>
        <translation>由{origin}创建的规则要求询问此调用可能进行的操作。无法确定它是否会这样做。</translation>
    </message>
    <message>
        <source>A rule made by {origin} asks about this call.</source>
        <translation>由{origin}创建的规则要求询问此调用。</translation>
    </message>
    <message>
        <source>A rule made by {origin} denies something that this call may do. It is not certain whether it does.</source>
        <translation>由{origin}创建的规则拒绝此调用可能进行的操作。无法确定它是否会这样做。</translation>
    </message>
    <message>
        <source>A rule made by {origin} denies this call. Find another way.</source>
        <translation>由{origin}创建的规则拒绝此调用。请另找办法。</translation>
    </message>
    <message>
        <source>A saved file is missing from the data folder.</source>
        <translation>数据文件夹中缺少某个已保存的文件。</translation>
    </message>
    <message>
        <source>A saved file was changed or damaged on the disk.</source>
        <translation>磁盘上某个已保存的文件已被更改或损坏。</translation>
    </message>
    <message>
        <source>A saved file was removed before it was needed.</source>
        <translation>已保存的文件在需要之前已被移除。</translation>
    </message>
    <message>
        <source>A stop sequence of blanks is not taken by this provider, so it was not sent.</source>
        <translation>此提供商不接受由空白组成的停止序列，因此未发送。</translation>
    </message>
    <message>
        <source>A stored picture must be loaded before a request is made.</source>
        <translation>发出请求之前必须先加载已存储的图片。</translation>
    </message>
    <message>
        <source>A title that was too long was cut.</source>
        <translation>过长的标题已被截短。</translation>
    </message>
    <message>
        <source>A tool is a function that answers once.</source>
        <translation>工具是只应答一次的函数。</translation>
    </message>
    <message>
        <source>Accept edits</source>
        <translation>接受编辑</translation>
    </message>
    <message>
        <source>Add credit at the provider, or choose another provider.</source>
        <translation>请在提供商处充值，或选择其他提供商。</translation>
    </message>
    <message>
        <source>Add it again if you want it.</source>
        <translation>如果需要，请重新添加。</translation>
    </message>
    <message>
        <source>Allow it once.</source>
        <translation>请允许一次。</translation>
    </message>
    <message>
        <source>An entry of the setting “{title}” cannot be used and was left out.</source>
        <translation>设置“{title}”的一个条目无法使用，已被省略。</translation>
    </message>
    <message>
        <source>An event loop runs here already.</source>
        <translation>这里已有一个事件循环在运行。</translation>
    </message>
    <message>
        <source>An index of the saved conversations was damaged, so that some could not be found. It was rebuilt from the conversations; nothing is lost.</source>
        <translation>已保存对话的一个索引已损坏，因此有些对话无法找到。已根据对话本身重新建立索引；没有任何内容丢失。</translation>
    </message>
    <message>
        <source>Another answer in its conversation has not ended yet.</source>
        <translation>其对话中的另一个回答尚未结束。</translation>
    </message>
    <message>
        <source>Another conversation of this export has the same id.</source>
        <translation>此导出中的另一个对话具有相同的 ID。</translation>
    </message>
    <message>
        <source>Another model made calls in this turn, so {model} goes on without the reasoning behind them.</source>
        <translation>此轮中的调用由另一个模型发出，因此 {model} 在没有其背后推理的情况下继续。</translation>
    </message>
    <message>
        <source>Another process has written to this conversation, so this window no longer saves to it.</source>
        <translation>另一个进程已写入此对话，因此此窗口不再向其中保存内容。</translation>
    </message>
    <message>
        <source>Another process runs the scheduled prompts.</source>
        <translation>另一个进程正在运行定时提示词。</translation>
    </message>
    <message>
        <source>Another task reads these steps already.</source>
        <translation>另一个任务已在读取这些步骤。</translation>
    </message>
    <message>
        <source>Another task reads this answer already.</source>
        <translation>另一个任务已在读取此回答。</translation>
    </message>
    <message>
        <source>Answer with one that allows or denies.</source>
        <translation>请以允许或拒绝的决定应答。</translation>
    </message>
    <message>
        <source>Answer with words, or with several of the choices.</source>
        <translation>请用文字回答，或选择多个选项。</translation>
    </message>
    <message>
        <source>Ask again if that does no harm: the server is then started again.</source>
        <translation>如果无妨，请重新询问：届时服务器会重新启动。</translation>
    </message>
    <message>
        <source>Ask first, with send() for example.</source>
        <translation>请先提问，例如使用 send()。</translation>
    </message>
    <message>
        <source>Ask for less at once, or choose a model that can be bound to a schema.</source>
        <translation>请一次少要求一些，或选择可受架构约束的模型。</translation>
    </message>
    <message>
        <source>Ask for less at once, or let the server offer less: it may have an option for that.</source>
        <translation>请一次请求更少的内容，或让服务器提供更少的内容：它可能有相应的选项。</translation>
    </message>
    <message>
        <source>Ask for less at once.</source>
        <translation>请一次少要求一些。</translation>
    </message>
    <message>
        <source>Ask the maker of the server for its “http” address.</source>
        <translation>请向服务器的开发者询问其“http”地址。</translation>
    </message>
    <message>
        <source>Ask the operator of the proxy, or correct its address in the system&apos;s settings or in the environment (http_proxy, https_proxy, all_proxy).</source>
        <translation>请询问代理服务器的运营者，或在系统设置或环境变量（http_proxy、https_proxy、all_proxy）中更正其地址。</translation>
    </message>
    <message>
        <source>Ask the operator of the proxy, or correct the proxy in the system&apos;s settings.</source>
        <translation>请询问代理服务器的运营者，或在系统设置中更正。</translation>
    </message>
    <message>
        <source>Ask the operator of the proxy, or correct the proxy in the system&apos;s settings. Then press Test.</source>
        <translation>请询问代理服务器的运营者，或在系统设置中更正；然后按“测试”。</translation>
    </message>
    <message>
        <source>Ask the operator of the server for a client id, and enter it with Edit; or ask for a key, and add it as a header.</source>
        <translation>请向服务器的运营者索要客户端 ID，并通过“编辑”输入；或索要密钥，并作为标头添加。</translation>
    </message>
    <message>
        <source>Ask the operator of the server.</source>
        <translation>请询问服务器的运营者。</translation>
    </message>
    <message>
        <source>Ask the operator of the server: the address must begin with https:// and be public.</source>
        <translation>请询问服务器的运营者：地址必须以 https:// 开头，并且可公开访问。</translation>
    </message>
    <message>
        <source>Ask you</source>
        <translation>向您提问</translation>
    </message>
    <message>
        <source>Attach it again.</source>
        <translation>请重新附加。</translation>
    </message>
    <message>
        <source>Attach it as PNG or JPEG.</source>
        <translation>请以 PNG 或 JPEG 格式附加。</translation>
    </message>
    <message>
        <source>Attach it as PNG, JPEG or WebP.</source>
        <translation>请以 PNG、JPEG 或 WebP 格式附加。</translation>
    </message>
    <message>
        <source>Attach pictures of its pages.</source>
        <translation>请附加其页面的图片。</translation>
    </message>
    <message>
        <source>Attach the picture itself instead.</source>
        <translation>请改为附加图片本身。</translation>
    </message>
    <message>
        <source>Bytes that are not text were replaced.</source>
        <translation>不是文本的字节已被替换。</translation>
    </message>
    <message>
        <source>Calculate</source>
        <translation>计算</translation>
    </message>
    <message>
        <source>Calls of this conversation are still open.</source>
        <translation>此对话的一些调用仍未结束。</translation>
    </message>
    <message>
        <source>Cancelled</source>
        <translation>已取消</translation>
    </message>
    <message>
        <source>Change the message and send it again.</source>
        <translation>请修改消息后重新发送。</translation>
    </message>
    <message>
        <source>Change the message, the model or its settings. The server&apos;s message says what it does not accept.</source>
        <translation>请更改消息、模型或其设置。服务器的消息说明了它不接受什么。</translation>
    </message>
    <message>
        <source>Change the mode</source>
        <translation>切换模式</translation>
    </message>
    <message>
        <source>Change the price in the file itself.</source>
        <translation>请在文件中更改价格。</translation>
    </message>
    <message>
        <source>Changes were redone. The model is told before it goes on.</source>
        <translation>更改已恢复。模型在继续之前会得知此事。</translation>
    </message>
    <message>
        <source>Changes were undone. The model is told before it goes on.</source>
        <translation>更改已撤销。模型在继续之前会得知此事。</translation>
    </message>
    <message>
        <source>Changes “{path}” in one place.

Old:
{old}

New:
{new}</source>
        <translation>在“{path}”中修改一处。

原来：
{old}

改为：
{new}</translation>
    </message>
    <message>
        <source>Changes “{path}” in {count} places.

Old:
{old}

New:
{new}</source>
        <translation>在“{path}”中修改 {count} 处。

原来：
{old}

改为：
{new}</translation>
    </message>
    <message>
        <source>Check each of its five fields.</source>
        <translation>请检查五个字段。</translation>
    </message>
    <message>
        <source>Check it in the settings, and try again.</source>
        <translation>请在设置中检查它，然后重试。</translation>
    </message>
    <message>
        <source>Check its address and your connection, then press Test.</source>
        <translation>请检查其地址和您的网络连接，然后按“测试”。</translation>
    </message>
    <message>
        <source>Check its address. If it is your own server, add its certificate to those that the system trusts, or name a file with it in SSL_CERT_FILE.</source>
        <translation>请检查其地址。如果这是您自己的服务器，请将其证书添加到系统信任的证书中，或在 SSL_CERT_FILE 中指定包含该证书的文件。</translation>
    </message>
    <message>
        <source>Check that it exists and can be read.</source>
        <translation>请确认它存在且允许读取。</translation>
    </message>
    <message>
        <source>Check that the server is running and the address is right, then try again.</source>
        <translation>请检查服务器是否正在运行以及地址是否正确，然后重试。</translation>
    </message>
    <message>
        <source>Check the API key for this provider.</source>
        <translation>请检查此提供商的 API 密钥。</translation>
    </message>
    <message>
        <source>Check the address; a private server needs its certificate in the system&apos;s trust store.</source>
        <translation>请检查地址；专用服务器的证书需要在系统的信任存储中。</translation>
    </message>
    <message>
        <source>Check the connection, then load it again.</source>
        <translation>请检查连接，然后重新加载。</translation>
    </message>
    <message>
        <source>Check the connection, then sign in again.</source>
        <translation>请检查连接，然后重新登录。</translation>
    </message>
    <message>
        <source>Check the disk and its free space, then revoke the rule again.</source>
        <translation>请检查磁盘及其可用空间，然后再次撤销该规则。</translation>
    </message>
    <message>
        <source>Check the disk and the folder&apos;s permissions; the conversation stays open in memory.</source>
        <translation>请检查磁盘和文件夹的权限；对话在内存中保持打开。</translation>
    </message>
    <message>
        <source>Check the server&apos;s address: it should be the API&apos;s base URL, often ending in /v1.</source>
        <translation>请检查服务器的地址：应为 API 的基础 URL，通常以 /v1 结尾。</translation>
    </message>
    <message>
        <source>Check whether its address should begin with http:// instead of https://.</source>
        <translation>请检查其地址是否应以 http:// 而不是 https:// 开头。</translation>
    </message>
    <message>
        <source>Check whether the address should begin with http:// instead of https://.</source>
        <translation>请检查地址是否应以 http:// 而不是 https:// 开头。</translation>
    </message>
    <message>
        <source>Check whether the address should begin with https:// instead of http://.</source>
        <translation>请检查地址是否应以 https:// 而不是 http:// 开头。</translation>
    </message>
    <message>
        <source>Check whether the other program still opens it. If that program is running, close it and try again.</source>
        <translation>请查看该程序是否仍能打开它；如果该程序正在运行，请关闭后重试。</translation>
    </message>
    <message>
        <source>Checking these arguments against the tool&apos;s schema takes too long.</source>
        <translation>根据工具的架构检查这些参数耗时过长。</translation>
    </message>
    <message>
        <source>Choose a data folder on a disk of this computer: desktop-agent --data-dir FOLDER.</source>
        <translation>请选择位于此计算机磁盘上的数据文件夹：desktop-agent --data-dir 文件夹。</translation>
    </message>
    <message>
        <source>Choose a file whose name ends in .gguf, or download it again.</source>
        <translation>请选择名称以 .gguf 结尾的文件，或重新下载。</translation>
    </message>
    <message>
        <source>Choose a folder first, or another scope.</source>
        <translation>请先选择文件夹，或选择其他作用范围。</translation>
    </message>
    <message>
        <source>Choose a folder that a backup has written.</source>
        <translation>请选择由备份写入的文件夹。</translation>
    </message>
    <message>
        <source>Choose a folder with a shorter path.</source>
        <translation>请选择路径较短的文件夹。</translation>
    </message>
    <message>
        <source>Choose a message of your own.</source>
        <translation>请选择您自己的消息。</translation>
    </message>
    <message>
        <source>Choose a model first.</source>
        <translation>请先选择模型。</translation>
    </message>
    <message>
        <source>Choose a model that calls tools, or turn tools off.</source>
        <translation>请选择能调用工具的模型，或关闭工具。</translation>
    </message>
    <message>
        <source>Choose a model that reads pictures, or remove them.</source>
        <translation>请选择能读取图片的模型，或移除图片。</translation>
    </message>
    <message>
        <source>Choose an answer or write one.</source>
        <translation>请选择一个选项，或写些内容。</translation>
    </message>
    <message>
        <source>Choose an answer.</source>
        <translation>请选择一个回答。</translation>
    </message>
    <message>
        <source>Choose another file.</source>
        <translation>请选择其他文件。</translation>
    </message>
    <message>
        <source>Choose another folder for the conversation, or make this one again.</source>
        <translation>请为对话选择其他文件夹，或重新创建此文件夹。</translation>
    </message>
    <message>
        <source>Choose another folder.</source>
        <translation>请选择其他文件夹。</translation>
    </message>
    <message>
        <source>Choose another model or server: the program has a fault in its connection to this one.</source>
        <translation>请选择其他模型或服务器：程序与此服务器的连接有故障。</translation>
    </message>
    <message>
        <source>Choose another model, or ask in words.</source>
        <translation>请选择其他模型，或用文字提问。</translation>
    </message>
    <message>
        <source>Choose another model, or ask the account&apos;s owner for access.</source>
        <translation>请选择其他模型，或向账户所有者申请访问权限。</translation>
    </message>
    <message>
        <source>Choose another model, or check the server&apos;s address.</source>
        <translation>请选择其他模型，或检查服务器的地址。</translation>
    </message>
    <message>
        <source>Choose another model, or choose the file again.</source>
        <translation>请选择其他模型，或重新选择该文件。</translation>
    </message>
    <message>
        <source>Choose another model, or the API “OpenAI Responses” for this server.</source>
        <translation>请选择其他模型，或为此服务器选择协议“OpenAI Responses”。</translation>
    </message>
    <message>
        <source>Choose another model, the API “OpenAI Responses” for this server, or turn tools off.</source>
        <translation>请选择其他模型，为此服务器选择协议“OpenAI Responses”，或关闭工具。</translation>
    </message>
    <message>
        <source>Choose another model.</source>
        <translation>请选择其他模型。</translation>
    </message>
    <message>
        <source>Choose another name for the copy.</source>
        <translation>请为副本选择其他名称。</translation>
    </message>
    <message>
        <source>Choose another name, or allow replacing it.</source>
        <translation>请选择其他名称，或允许替换。</translation>
    </message>
    <message>
        <source>Choose another name, or another folder.</source>
        <translation>请选择其他名称或其他文件夹。</translation>
    </message>
    <message>
        <source>Choose another name, or set replace.</source>
        <translation>请选择其他名称，或设置 replace。</translation>
    </message>
    <message>
        <source>Choose another one.</source>
        <translation>请选择其他的。</translation>
    </message>
    <message>
        <source>Choose one from the list.</source>
        <translation>请从列表中选择。</translation>
    </message>
    <message>
        <source>Choose one of the modes.</source>
        <translation>请选择其中一个模式。</translation>
    </message>
    <message>
        <source>Choose one of the rules that were shown.</source>
        <translation>请选择所显示的规则之一。</translation>
    </message>
    <message>
        <source>Choose one of them.</source>
        <translation>请选用其中一个。</translation>
    </message>
    <message>
        <source>Choose one of: anthropic, gemini, openai-chat, openai-responses.</source>
        <translation>请选择以下之一：anthropic、gemini、openai-chat、openai-responses。</translation>
    </message>
    <message>
        <source>Choose one that is shown.</source>
        <translation>请选择所显示的某一项。</translation>
    </message>
    <message>
        <source>Choose only one.</source>
        <translation>请只选择一个选项。</translation>
    </message>
    <message>
        <source>Choose the archive, the folder or the conversations.json of an export.</source>
        <translation>请选择导出的压缩包、文件夹或 conversations.json。</translation>
    </message>
    <message>
        <source>Choose the file of the model itself.</source>
        <translation>请选择模型本身的文件。</translation>
    </message>
    <message>
        <source>Choose the file or the folder of an export.</source>
        <translation>请选择导出的文件或文件夹。</translation>
    </message>
    <message>
        <source>Choose the folder again if that is right, or another one.</source>
        <translation>如果这是对的，请重新选择该文件夹，否则请选择另一个。</translation>
    </message>
    <message>
        <source>Choose the folder of the export alone.</source>
        <translation>请只选择导出的文件夹。</translation>
    </message>
    <message>
        <source>Choose the name of a file in it.</source>
        <translation>请选择其中一个文件的名称。</translation>
    </message>
    <message>
        <source>Choose the name of a file.</source>
        <translation>请选择文件名。</translation>
    </message>
    <message>
        <source>Choose the name of a folder.</source>
        <translation>请选择文件夹名。</translation>
    </message>
    <message>
        <source>Close it, or begin the run there.</source>
        <translation>请关闭它，或在那里开始运行。</translation>
    </message>
    <message>
        <source>Close it, then start again.</source>
        <translation>请将其关闭，然后重新启动。</translation>
    </message>
    <message>
        <source>Close it, then try again.</source>
        <translation>请将其关闭，然后重试。</translation>
    </message>
    <message>
        <source>Close other windows of the program that do not answer, then try again.</source>
        <translation>请关闭本程序其他没有响应的窗口，然后重试。</translation>
    </message>
    <message>
        <source>Close the other window of this program and try again.</source>
        <translation>请关闭本程序的另一个窗口，然后重试。</translation>
    </message>
    <message>
        <source>Close the program and start it again. Nothing is saved until then.</source>
        <translation>请关闭程序并重新启动。在此之前不会保存任何内容。</translation>
    </message>
    <message>
        <source>Close the program and start it again: it sets the damaged file aside and carries over what can be read.</source>
        <translation>请关闭程序并重新启动：它会将损坏的文件另行保存，并沿用可以读取的内容。</translation>
    </message>
    <message>
        <source>Compacting needs {needed} of free room on the disk of “{folder}”.</source>
        <translation>压缩需要“{folder}”所在磁盘上有 {needed} 可用空间。</translation>
    </message>
    <message>
        <source>Confined by {name}.</source>
        <translation>由 {name} 隔离。</translation>
    </message>
    <message>
        <source>Connect a model first.</source>
        <translation>请先连接模型。</translation>
    </message>
    <message>
        <source>Content from {outsider} and {count} more came into this conversation. It may try to mislead the model, so you are asked about calls that could send data or run something, even if a rule allows them.</source>
        <translation>来自{outsider}以及另外 {count} 处的内容进入了此对话。这些内容可能试图误导模型，因此可能发送数据或运行内容的调用都会询问您，即使有规则允许。</translation>
    </message>
    <message>
        <source>Content from {outsider} came into this conversation. It may try to mislead the model, so you are asked about calls that could send data or run something, even if a rule allows them.</source>
        <translation>来自{outsider}的内容进入了此对话。这些内容可能试图误导模型，因此可能发送数据或运行内容的调用都会询问您，即使有规则允许。</translation>
    </message>
    <message>
        <source>Content from {source} came in. You are asked again about calls that could send data or run something, even if a rule allows them.</source>
        <translation>来自{source}的内容进入了对话。可能发送数据或运行内容的调用会再次询问您，即使有规则允许。</translation>
    </message>
    <message>
        <source>Content of the kind “{kind}” is not known and was kept as it is.</source>
        <translation>类型为“{kind}”的内容未知，已原样保留。</translation>
    </message>
    <message>
        <source>Content that this version does not know was kept as it is.</source>
        <translation>此版本无法识别的内容已原样保留。</translation>
    </message>
    <message>
        <source>Continue it here to send something.</source>
        <translation>请在这里继续该对话，以便发送内容。</translation>
    </message>
    <message>
        <source>Conversations compressed with zstd (.jsonl.zst), which this program cannot unpack. Unpack them with “zstd -d” first.</source>
        <translation>用 zstd 压缩的对话（.jsonl.zst），本程序无法解压。请先用“zstd -d”解压。</translation>
    </message>
    <message>
        <source>Converted from {format} to PNG.</source>
        <translation>已从 {format} 转换为 PNG。</translation>
    </message>
    <message>
        <source>Copy it again, without line breaks.</source>
        <translation>请重新复制，不要带换行符。</translation>
    </message>
    <message>
        <source>Copy its text into the message, or attach pictures of its pages.</source>
        <translation>请将其中的文本复制到消息中，或添加各页的图片。</translation>
    </message>
    <message>
        <source>Copy only the part with “mcpServers”.</source>
        <translation>请只复制含“mcpServers”的部分。</translation>
    </message>
    <message>
        <source>Copy the details and report what you did.</source>
        <translation>请复制详细信息，并报告您所做的操作。</translation>
    </message>
    <message>
        <source>Copy the details to see what the server said, or choose another model.</source>
        <translation>请复制详细信息以查看服务器的输出，或选择其他模型。</translation>
    </message>
    <message>
        <source>Copy the key again, without line breaks.</source>
        <translation>请重新复制密钥，不要带换行符。</translation>
    </message>
    <message>
        <source>Copy the whole of it again, from the first to the last brace.</source>
        <translation>请重新复制全部内容，从第一个花括号到最后一个花括号。</translation>
    </message>
    <message>
        <source>Correct it and import again.</source>
        <translation>请更正后重新导入。</translation>
    </message>
    <message>
        <source>Correct it in the system&apos;s settings or in the environment (http_proxy, https_proxy, all_proxy).</source>
        <translation>请在系统设置或环境变量（http_proxy、https_proxy、all_proxy）中更正。</translation>
    </message>
    <message>
        <source>Correct it, or look for plain text.</source>
        <translation>请更正，或查找普通文本。</translation>
    </message>
    <message>
        <source>Correct its address, or allow the host in the settings of the network.</source>
        <translation>请更正其地址，或在网络设置中允许该主机。</translation>
    </message>
    <message>
        <source>Correct its command with Edit: it must speak MCP over stdio.</source>
        <translation>请通过“编辑”更正其命令：它必须通过 stdio 使用 MCP。</translation>
    </message>
    <message>
        <source>Correct or unset SSL_CERT_FILE and SSL_CERT_DIR. If neither is set, repair the system&apos;s certificates.</source>
        <translation>请更正或取消设置 SSL_CERT_FILE 和 SSL_CERT_DIR。如果两者都未设置，请修复系统的证书。</translation>
    </message>
    <message>
        <source>Correct the address with Edit, or ask the operator of the server.</source>
        <translation>请通过“编辑”更正其地址，或询问其运营者。</translation>
    </message>
    <message>
        <source>Correct the call and try again.</source>
        <translation>请更正调用后重试。</translation>
    </message>
    <message>
        <source>Correct the call, or do without it.</source>
        <translation>请更正调用，或不使用它。</translation>
    </message>
    <message>
        <source>Correct the call, or look at the server&apos;s log.</source>
        <translation>请更正调用，或查看服务器的日志。</translation>
    </message>
    <message>
        <source>Correct the server&apos;s command and its arguments with Edit.</source>
        <translation>请通过“编辑”更正服务器的命令及其参数。</translation>
    </message>
    <message>
        <source>Damaged or unfinished entries.</source>
        <translation>损坏或未完成的条目。</translation>
    </message>
    <message>
        <source>Decide about them first, then delete.</source>
        <translation>请先对它们作出决定，然后再删除。</translation>
    </message>
    <message>
        <source>Default</source>
        <translation>默认</translation>
    </message>
    <message>
        <source>Delete a file</source>
        <translation>删除文件</translation>
    </message>
    <message>
        <source>Delete it first.</source>
        <translation>请先将其删除。</translation>
    </message>
    <message>
        <source>Deletes the binary file “{path}” ({size} bytes).</source>
        <translation>删除二进制文件“{path}”（{size} 字节）。</translation>
    </message>
    <message>
        <source>Deletes the empty folder “{path}”.</source>
        <translation>删除空文件夹“{path}”。</translation>
    </message>
    <message>
        <source>Deletes this picture ({size} bytes).</source>
        <translation>删除此图片（{size} 字节）。</translation>
    </message>
    <message>
        <source>Deletes “{path}” ({size} bytes).</source>
        <translation>删除“{path}”（{size} 字节）。</translation>
    </message>
    <message>
        <source>Deletes “{path}” ({size} bytes). It is too large to be kept, so this cannot be undone.</source>
        <translation>删除“{path}”（{size} 字节）。文件太大，无法保留副本，因此此操作不能撤销。</translation>
    </message>
    <message>
        <source>Denied</source>
        <translation>已拒绝</translation>
    </message>
    <message>
        <source>Do it yourself.</source>
        <translation>请自己完成。</translation>
    </message>
    <message>
        <source>Do not run it again for that; its program must be corrected.</source>
        <translation>不要因此再次运行；需要更正的是其程序。</translation>
    </message>
    <message>
        <source>Do that part yourself, or give the specialist everything that it needs in its context.</source>
        <translation>请自己完成该部分，或在上下文中向专家提供其所需的一切。</translation>
    </message>
    <message>
        <source>Done</source>
        <translation>完成</translation>
    </message>
    <message>
        <source>Download the export again.</source>
        <translation>请重新下载导出。</translation>
    </message>
    <message>
        <source>Download the missing file into the same folder.</source>
        <translation>请将缺少的文件下载到同一文件夹。</translation>
    </message>
    <message>
        <source>Duplicate entries.</source>
        <translation>重复的条目。</translation>
    </message>
    <message>
        <source>Edit a file</source>
        <translation>编辑文件</translation>
    </message>
    <message>
        <source>Edit the one that waits, or send a new one.</source>
        <translation>请编辑等待中的消息，或发送一条新消息。</translation>
    </message>
    <message>
        <source>End with what is missing, so that your caller can ask.</source>
        <translation>请在结尾说明缺少什么，以便调用者询问。</translation>
    </message>
    <message>
        <source>Ended at a limit</source>
        <translation>因达到限制而结束</translation>
    </message>
    <message>
        <source>Ends of lists that are too long.</source>
        <translation>过长列表的末尾部分。</translation>
    </message>
    <message>
        <source>Enter an API key for this server.</source>
        <translation>请为此服务器输入 API 密钥。</translation>
    </message>
    <message>
        <source>Enter it again in the settings of the server.</source>
        <translation>请在服务器的设置中重新输入。</translation>
    </message>
    <message>
        <source>Enter the base URL of the API, for example http://127.0.0.1:11434/v1.</source>
        <translation>请输入 API 的基础 URL，例如 http://127.0.0.1:11434/v1。</translation>
    </message>
    <message>
        <source>Entries of an unknown kind ({name}).</source>
        <translation>未知类型的条目（{name}）。</translation>
    </message>
    <message>
        <source>Entries that are too long.</source>
        <translation>过长的条目。</translation>
    </message>
    <message>
        <source>Export or download it again.</source>
        <translation>请重新导出或重新下载。</translation>
    </message>
    <message>
        <source>Failed</source>
        <translation>失败</translation>
    </message>
    <message>
        <source>Files are being put back just now.</source>
        <translation>文件正在还原。</translation>
    </message>
    <message>
        <source>Files of which only the beginning was read.</source>
        <translation>只读取了开头部分的文件。</translation>
    </message>
    <message>
        <source>Files that cannot be read.</source>
        <translation>无法读取的文件。</translation>
    </message>
    <message>
        <source>Find files</source>
        <translation>查找文件</translation>
    </message>
    <message>
        <source>Folders can be {most} deep within one another.</source>
        <translation>文件夹最多可嵌套 {most} 层。</translation>
    </message>
    <message>
        <source>Free some space and try again. Nothing that was saved is lost, and what is open stays open.</source>
        <translation>请释放一些空间后重试。已保存的内容不会丢失，已打开的内容保持打开。</translation>
    </message>
    <message>
        <source>Free some space, then try again. Nothing was changed.</source>
        <translation>请释放一些空间后重试。没有更改任何内容。</translation>
    </message>
    <message>
        <source>From {program}, read only.</source>
        <translation>来自 {program}，只读。</translation>
    </message>
    <message>
        <source>Functions are called by name, with values only.</source>
        <translation>函数按名称调用，只能使用值。</translation>
    </message>
    <message>
        <source>Gemini does not read GIF pictures.</source>
        <translation>Gemini 不读取 GIF 图片。</translation>
    </message>
    <message>
        <source>Gemini takes at most {count} stop sequences.</source>
        <translation>Gemini 最多接受 {count} 个停止序列。</translation>
    </message>
    <message>
        <source>Give a pydantic model, a dataclass, a TypedDict, or a list or a union of these.</source>
        <translation>请提供 pydantic 模型、dataclass、TypedDict，或它们的列表或联合类型。</translation>
    </message>
    <message>
        <source>Give at least one message.</source>
        <translation>请至少提供一条消息。</translation>
    </message>
    <message>
        <source>Give dialect or base_url.</source>
        <translation>请指定 dialect 或 base_url。</translation>
    </message>
    <message>
        <source>Give each mode a name of its own.</source>
        <translation>请为每个模式取不同的名称。</translation>
    </message>
    <message>
        <source>Give each result once.</source>
        <translation>每个结果只提供一次。</translation>
    </message>
    <message>
        <source>Give every call its result first.</source>
        <translation>请先为每个调用提供结果。</translation>
    </message>
    <message>
        <source>Give it another id.</source>
        <translation>请换一个 ID。</translation>
    </message>
    <message>
        <source>Give it more time with timeout_seconds, or let it do less at once.</source>
        <translation>请用 timeout_seconds 给它更多时间，或让它一次少做一些。</translation>
    </message>
    <message>
        <source>Give it one that begins with https://.</source>
        <translation>请提供以 https:// 开头的地址。</translation>
    </message>
    <message>
        <source>Give it to the server as a variable, under “env”.</source>
        <translation>请在“env”下作为变量提供给服务器。</translation>
    </message>
    <message>
        <source>Give it under its own id.</source>
        <translation>请用它自己的 ID 提供。</translation>
    </message>
    <message>
        <source>Give it “command” or “url”.</source>
        <translation>请提供“command”或“url”。</translation>
    </message>
    <message>
        <source>Give its folder with --workspace, and name the file in the prompt.</source>
        <translation>请用 --workspace 指定其所在文件夹，并在提示词中写出文件名。</translation>
    </message>
    <message>
        <source>Give more of the text around the one that is meant, or set replace_all.</source>
        <translation>请提供目标位置周围更多的文本，或设置 replace_all。</translation>
    </message>
    <message>
        <source>Give results before the conversation goes on.</source>
        <translation>请在对话继续之前提供结果。</translation>
    </message>
    <message>
        <source>Give results with add_tool_result().</source>
        <translation>请用 add_tool_result() 提供结果。</translation>
    </message>
    <message>
        <source>Give strings, numbers, lists and dicts.</source>
        <translation>请提供字符串、数字、列表和字典。</translation>
    </message>
    <message>
        <source>Give the `id` of its ToolUse.</source>
        <translation>请提供其 ToolUse 的 `id`。</translation>
    </message>
    <message>
        <source>Give the function a parameter for each argument, and a default to each that may be left out.</source>
        <translation>请为函数的每个参数设置一个形参，并为可省略的参数设置默认值。</translation>
    </message>
    <message>
        <source>Give the id of a call that was handed out.</source>
        <translation>请提供已发出的某个调用的 ID。</translation>
    </message>
    <message>
        <source>Give the results of all calls together.</source>
        <translation>请一起提供所有调用的结果。</translation>
    </message>
    <message>
        <source>Give the whole path of a program with Edit.</source>
        <translation>请通过“编辑”提供程序的完整路径。</translation>
    </message>
    <message>
        <source>Give them as a header, “Authorization”.</source>
        <translation>请作为标头“Authorization”提供。</translation>
    </message>
    <message>
        <source>Give them types that JSON has, or a pydantic model, or give the tool a schema.</source>
        <translation>请使用 JSON 支持的类型或 pydantic 模型，或为工具提供架构。</translation>
    </message>
    <message>
        <source>Give turn_end or session_stop.</source>
        <translation>请使用 turn_end 或 session_stop。</translation>
    </message>
    <message>
        <source>Go on as it is, or begin a new conversation.</source>
        <translation>请照此继续，或开始新对话。</translation>
    </message>
    <message>
        <source>Go on in the mode that holds.</source>
        <translation>请在当前模式下继续。</translation>
    </message>
    <message>
        <source>Go on without it, or call it again with another task.</source>
        <translation>请在没有它的情况下继续，或以其他任务再次调用它。</translation>
    </message>
    <message>
        <source>Go on without it.</source>
        <translation>请在没有它的情况下继续。</translation>
    </message>
    <message>
        <source>Go on.</source>
        <translation>请继续。</translation>
    </message>
    <message>
        <source>Hidden information about place, camera and time was removed.</source>
        <translation>有关地点、相机和时间的隐藏信息已移除。</translation>
    </message>
    <message>
        <source>How hard “{model}” reasons cannot be chosen, so that was left out.</source>
        <translation>无法选择“{model}”的推理级别，因此已省略。</translation>
    </message>
    <message>
        <source>If it happens again, look at its log.</source>
        <translation>如果再次发生，请查看其日志。</translation>
    </message>
    <message>
        <source>If the server must be downloaded first, as with npx and uvx, run its command once in a terminal. Then press Test.</source>
        <translation>如果需要先下载（如 npx 和 uvx），请在终端中运行一次其命令；然后按“测试”。</translation>
    </message>
    <message>
        <source>If you trust that address, use it as this server&apos;s base URL.</source>
        <translation>如果您信任该地址，请将其用作此服务器的基础 URL。</translation>
    </message>
    <message>
        <source>Import at most {n} at a time.</source>
        <translation>一次最多导入 {n} 个。</translation>
    </message>
    <message>
        <source>In your file “{name}”, line {line}, {place} was left out: {why}.</source>
        <translation>您的文件“{name}”第 {line} 行中的 {place} 已被省略：{why}。</translation>
    </message>
    <message>
        <source>In your file “{name}”, {place} was left out: {why}.</source>
        <translation>您的文件“{name}”中的 {place} 已被省略：{why}。</translation>
    </message>
    <message>
        <source>Install bubblewrap to confine commands.</source>
        <translation>请安装 bubblewrap 以隔离命令。</translation>
    </message>
    <message>
        <source>Install it, or give its whole path with Edit.</source>
        <translation>请安装它，或通过“编辑”提供其完整路径。</translation>
    </message>
    <message>
        <source>Install llama.cpp (https://github.com/ggml-org/llama.cpp), so that there is a program llama-server.</source>
        <translation>请安装 llama.cpp (https://github.com/ggml-org/llama.cpp)，以提供 llama-server 程序。</translation>
    </message>
    <message>
        <source>Install that program, or correct the first line.</source>
        <translation>请安装该程序，或更正第一行。</translation>
    </message>
    <message>
        <source>Install the newest version, and import it there.</source>
        <translation>请安装最新版本，并在其中导入。</translation>
    </message>
    <message>
        <source>Install the newest version, or start with another data folder.</source>
        <translation>请安装最新版本，或使用其他数据文件夹启动。</translation>
    </message>
    <message>
        <source>Instructions that are in a conversation, and are not shown in it, were kept.</source>
        <translation>对话中包含但未显示的指令已保留。</translation>
    </message>
    <message>
        <source>Internal entries of the other program ({name}).</source>
        <translation>其他程序的内部条目（{name}）。</translation>
    </message>
    <message>
        <source>Interrupted</source>
        <translation>已中断</translation>
    </message>
    <message>
        <source>It can read those, the system, and your development tools with their caches and settings, but no other file of yours.</source>
        <translation>它可以读取这些文件夹、系统，以及您的开发工具及其缓存和设置，但不能读取您的其他文件。</translation>
    </message>
    <message>
        <source>It can still change the permissions and dates of your other files, and what git and other programs run by themselves, without confinement, in the workspace; you are told if it did.</source>
        <translation>它仍可更改您其他文件的权限和日期，以及工作文件夹中由 git 和其他程序自行运行且不受隔离的内容；如有更改会告知您。</translation>
    </message>
    <message>
        <source>It cannot change the hooks and settings of git that are in the workspace now, nor what other programs run by themselves there, but for the files that it names and those that git checks out.</source>
        <translation>它不能更改工作文件夹中现有的 git 钩子和设置，也不能更改其他程序在那里自行运行的内容，但它指明的文件和 git 检出的文件除外。</translation>
    </message>
    <message>
        <source>It has no network access.</source>
        <translation>它没有网络访问权限。</translation>
    </message>
    <message>
        <source>It is a binary file.</source>
        <translation>这是二进制文件。</translation>
    </message>
    <message>
        <source>It is damaged: this is not JSON.</source>
        <translation>它已损坏：这不是 JSON。</translation>
    </message>
    <message>
        <source>It is nested too deeply.</source>
        <translation>它嵌套过深。</translation>
    </message>
    <message>
        <source>It is not a conversation.</source>
        <translation>它不是对话。</translation>
    </message>
    <message>
        <source>It is not allowed for now.</source>
        <translation>暂时不允许。</translation>
    </message>
    <message>
        <source>It is not certain what this command would do.</source>
        <translation>无法确定此命令会做什么。</translation>
    </message>
    <message>
        <source>It is not clear what to import.</source>
        <translation>不清楚要导入什么。</translation>
    </message>
    <message>
        <source>It is too large to be read.</source>
        <translation>它过大，无法读取。</translation>
    </message>
    <message>
        <source>It lacks something that a conversation must have, or its messages are out of order.</source>
        <translation>它缺少对话必需的内容，或其消息顺序有误。</translation>
    </message>
    <message>
        <source>It may have been deleted meanwhile. Choose another one.</source>
        <translation>它可能已被删除。请选择另一个。</translation>
    </message>
    <message>
        <source>It may have been deleted meanwhile. Choose one that is shown.</source>
        <translation>它可能已被删除。请选择显示的一个。</translation>
    </message>
    <message>
        <source>It was set aside under another name, and what could be read was carried over.</source>
        <translation>它已以其他名称另行保存，可以读取的内容已沿用。</translation>
    </message>
    <message>
        <source>It would remove or change everything on this computer, or everything of its user.</source>
        <translation>它会删除或更改此计算机或其用户的所有内容。</translation>
    </message>
    <message>
        <source>It would start itself again and again until the computer stops responding.</source>
        <translation>它会不断启动自身，直到计算机停止响应。</translation>
    </message>
    <message>
        <source>It would write directly to a disk, bypassing its file system.</source>
        <translation>它会绕过文件系统写入磁盘。</translation>
    </message>
    <message>
        <source>It would write where keys and passwords are kept.</source>
        <translation>它会写入存放密钥和密码的位置。</translation>
    </message>
    <message>
        <source>It would write where this program keeps its own data.</source>
        <translation>它会写入本程序存放自身数据的位置。</translation>
    </message>
    <message>
        <source>Its HTML is broken, very large, or built to do harm; look for another page.</source>
        <translation>其 HTML 有误、过大或意在造成危害；请找其他页面。</translation>
    </message>
    <message>
        <source>Its HTML is built to be slow or very large; look for another page.</source>
        <translation>其 HTML 被故意做得很慢或很大；请找其他页面。</translation>
    </message>
    <message>
        <source>Its ids are not those of a conversation.</source>
        <translation>其 ID 不是对话的 ID。</translation>
    </message>
    <message>
        <source>Its last run has not ended yet.</source>
        <translation>上一次运行尚未结束。</translation>
    </message>
    <message>
        <source>Keys, passwords or what was typed may be kept there.</source>
        <translation>那里可能存有密钥、密码或输入过的内容。</translation>
    </message>
    <message>
        <source>Label it with what it contains.</source>
        <translation>请按其内容标注。</translation>
    </message>
    <message>
        <source>Leave it out, and enter the key as API key.</source>
        <translation>请省略它，并将密钥作为 API 密钥输入。</translation>
    </message>
    <message>
        <source>Limit reached</source>
        <translation>已达限制</translation>
    </message>
    <message>
        <source>Links, which are not followed.</source>
        <translation>链接，不予跟随。</translation>
    </message>
    <message>
        <source>List files</source>
        <translation>列出文件</translation>
    </message>
    <message>
        <source>Load it only if you know this host: whoever wrote the text chose the address.</source>
        <translation>仅当您认识此主机时才加载：地址由这段文字的作者选定。</translation>
    </message>
    <message>
        <source>Look at a picture</source>
        <translation>查看图片</translation>
    </message>
    <message>
        <source>Look at its log, correct it with Edit, then press Test.</source>
        <translation>请查看其日志，通过“编辑”更正，然后按“测试”。</translation>
    </message>
    <message>
        <source>Look at its log.</source>
        <translation>请查看其日志。</translation>
    </message>
    <message>
        <source>Look at the call&apos;s arguments.</source>
        <translation>请查看调用的参数。</translation>
    </message>
    <message>
        <source>Look at the list.</source>
        <translation>请查看列表。</translation>
    </message>
    <message>
        <source>Look at the server&apos;s log.</source>
        <translation>请查看服务器的日志。</translation>
    </message>
    <message>
        <source>Look at what was said, then delete again.</source>
        <translation>请查看所说的内容，然后再次删除。</translation>
    </message>
    <message>
        <source>Look for a page with text.</source>
        <translation>请找有文本的页面。</translation>
    </message>
    <message>
        <source>Look for a smaller page.</source>
        <translation>请找较小的页面。</translation>
    </message>
    <message>
        <source>Look for another page.</source>
        <translation>请找其他页面。</translation>
    </message>
    <message>
        <source>Look for it in the system&apos;s list of processes.</source>
        <translation>请在系统的进程列表中查找。</translation>
    </message>
    <message>
        <source>Make a new one in each loop, and close each.</source>
        <translation>请在每个循环中新建一个，并逐个关闭。</translation>
    </message>
    <message>
        <source>Make a new one.</source>
        <translation>请新建一个。</translation>
    </message>
    <message>
        <source>Make it executable, or name the program that runs it, such as python or sh, as the command.</source>
        <translation>请使其可执行，或将运行它的程序（例如 python 或 sh）指定为命令。</translation>
    </message>
    <message>
        <source>Make it one with @tool.</source>
        <translation>请用 @tool 将其变为工具。</translation>
    </message>
    <message>
        <source>Make it smaller and attach it again.</source>
        <translation>请缩小后重新附加。</translation>
    </message>
    <message>
        <source>Make it with Message.user(…) and the like.</source>
        <translation>请用 Message.user(…) 等方式创建。</translation>
    </message>
    <message>
        <source>Make it with Message.user(…), or give a string.</source>
        <translation>请用 Message.user(…) 创建，或提供字符串。</translation>
    </message>
    <message>
        <source>Make it with Message.user(…), or give words to send().</source>
        <translation>请用 Message.user(…) 创建，或将文字传给 send()。</translation>
    </message>
    <message>
        <source>Make it with ToolResult(tool_use_id=…).</source>
        <translation>请用 ToolResult(tool_use_id=…) 创建。</translation>
    </message>
    <message>
        <source>Make it with these tools.</source>
        <translation>请用这些工具创建。</translation>
    </message>
    <message>
        <source>Make it, or choose another one.</source>
        <translation>请创建它，或选择其他文件夹。</translation>
    </message>
    <message>
        <source>Make messages of texts, pictures, calls and results, and of what can be written as JSON.</source>
        <translation>请用文本、图片、调用和结果以及可以写成 JSON 的内容组成消息。</translation>
    </message>
    <message>
        <source>Make the folder writable, or choose another one.</source>
        <translation>请将该文件夹设为可写，或选择其他文件夹。</translation>
    </message>
    <message>
        <source>Make the options with auto_execute_tools=False, or do not.</source>
        <translation>请用 auto_execute_tools=False 创建选项，或不要这样做。</translation>
    </message>
    <message>
        <source>Make them with AgentOptions(model=…).</source>
        <translation>请用 AgentOptions(model=…) 创建。</translation>
    </message>
    <message>
        <source>Make them with Message.user(…) and the like.</source>
        <translation>请用 Message.user(…) 等方式创建。</translation>
    </message>
    <message>
        <source>Messages that name themselves as the message before; each begins a branch.</source>
        <translation>将自身列为前一条的消息；每条都开始一个分支。</translation>
    </message>
    <message>
        <source>Messages wait to be sent.</source>
        <translation>有消息正在等待发送。</translation>
    </message>
    <message>
        <source>Messages whose previous message is missing; they follow the one above them.</source>
        <translation>缺少前一条的消息；它们接在其前面的消息之后。</translation>
    </message>
    <message>
        <source>More was not understood; only the first kinds are listed.</source>
        <translation>还有更多内容无法理解；只列出了最先的几种。</translation>
    </message>
    <message>
        <source>Mount the disk, or let the link lead to where the files are now.</source>
        <translation>请挂载磁盘，或让链接指向文件现在所在的位置。</translation>
    </message>
    <message>
        <source>Move a file</source>
        <translation>移动文件</translation>
    </message>
    <message>
        <source>Move the file away, or choose another folder.</source>
        <translation>请将该文件移到别处，或选择其他文件夹。</translation>
    </message>
    <message>
        <source>Moves “{source}”
to “{target}”.</source>
        <translation>将“{source}”
移动到“{target}”。</translation>
    </message>
    <message>
        <source>Moves “{source}”
to “{target}”.

This replaces what is there ({size} bytes).</source>
        <translation>将“{source}”
移动到“{target}”。

这会替换那里已有的文件（{size} 字节）。</translation>
    </message>
    <message>
        <source>Name a conversation.</source>
        <translation>请指定一个对话。</translation>
    </message>
    <message>
        <source>Name a file, or a program with --from.</source>
        <translation>请指定文件，或用 --from 指定程序。</translation>
    </message>
    <message>
        <source>Name files like *.py or src/**/*.py.</source>
        <translation>请指定文件，例如 *.py 或 src/**/*.py。</translation>
    </message>
    <message>
        <source>Name it among them.</source>
        <translation>请在其中指定它。</translation>
    </message>
    <message>
        <source>Name one of the options&apos; specialists.</source>
        <translation>请指定选项中的一个专家。</translation>
    </message>
    <message>
        <source>Name one of those that are installed.</source>
        <translation>请指定已安装的某一项。</translation>
    </message>
    <message>
        <source>Name one of those that were added.</source>
        <translation>请指定已添加的某一项。</translation>
    </message>
    <message>
        <source>Name one of: {known}.</source>
        <translation>请指定以下之一：{known}。</translation>
    </message>
    <message>
        <source>Name the file, and the file that it becomes.</source>
        <translation>请指定文件以及它将变成的文件。</translation>
    </message>
    <message>
        <source>Name the folder of the backups.</source>
        <translation>请指定备份所在的文件夹。</translation>
    </message>
    <message>
        <source>Name the folder that has them with --data-dir.</source>
        <translation>请用 --data-dir 指定包含它们的文件夹。</translation>
    </message>
    <message>
        <source>Name the program that runs it, such as python or sh, as the command.</source>
        <translation>请将运行它的程序（例如 python 或 sh）指定为命令。</translation>
    </message>
    <message>
        <source>Name words, or a filter: see `search --help`.</source>
        <translation>请写出要查找的词，或使用筛选：参见 `search --help`。</translation>
    </message>
    <message>
        <source>Names of folders that were too long, too many or empty were cut.</source>
        <translation>过长、过多或为空的文件夹名称已被截断。</translation>
    </message>
    <message>
        <source>No address of this computer is free for the answer.</source>
        <translation>此计算机没有可用于接收应答的空闲地址。</translation>
    </message>
    <message>
        <source>No answer yet, {seconds} s.</source>
        <translation>尚无回答，{seconds} 秒。</translation>
    </message>
    <message>
        <source>No call waits for a result.</source>
        <translation>没有等待结果的调用。</translation>
    </message>
    <message>
        <source>No conversation has the tag “{tag}”.</source>
        <translation>没有对话带有标签“{tag}”。</translation>
    </message>
    <message>
        <source>No conversation is stored with the id “{id}”.</source>
        <translation>没有以 ID“{id}”保存的对话。</translation>
    </message>
    <message>
        <source>No free port was found for the model.</source>
        <translation>未找到可供模型使用的空闲端口。</translation>
    </message>
    <message>
        <source>No histories of “{program}” can be read.</source>
        <translation>无法读取“{program}”的历史记录。</translation>
    </message>
    <message>
        <source>No model could answer the server “{server}”: {why}
{remedy}</source>
        <translation>没有模型能够回答服务器“{server}”：{why}
{remedy}</translation>
    </message>
    <message>
        <source>No model is chosen for this conversation.</source>
        <translation>没有为此对话选择模型。</translation>
    </message>
    <message>
        <source>No model is chosen.</source>
        <translation>没有选择模型。</translation>
    </message>
    <message>
        <source>No model is named.</source>
        <translation>没有指定模型。</translation>
    </message>
    <message>
        <source>No model server is set up yet.</source>
        <translation>尚未设置模型服务器。</translation>
    </message>
    <message>
        <source>No prompt policy is called “{id}”.</source>
        <translation>没有名为“{id}”的提示词策略。</translation>
    </message>
    <message>
        <source>No reasoning was asked for, because the model must call a tool.</source>
        <translation>未请求推理，因为模型必须调用工具。</translation>
    </message>
    <message>
        <source>Nobody is signed in to the server “{server}”.</source>
        <translation>无人登录服务器“{server}”。</translation>
    </message>
    <message>
        <source>Not confined: the command can read, change and send whatever you can.</source>
        <translation>不受隔离：您能读取、更改和发送的，它都能。</translation>
    </message>
    <message>
        <source>Not confined: this program runs as root, and no confinement holds root. Run it as an ordinary user, so that commands are confined.</source>
        <translation>不受隔离：本程序以 root 身份运行，任何隔离都约束不了 root。请以普通用户身份运行，以便隔离命令。</translation>
    </message>
    <message>
        <source>Not everything can be searched: less than 100 MB are free on this disk, too little for the index. Free some space.</source>
        <translation>并非所有内容都可搜索：此磁盘的可用空间少于 100 MB，不足以存放索引。请释放一些空间。</translation>
    </message>
    <message>
        <source>Not everything can be searched: the data folder is write-protected, and the search keeps its index there. Make the folder writable, or open a writable copy of it.</source>
        <translation>并非所有内容都可搜索：数据文件夹受写保护，而搜索在其中保存索引。请将该文件夹设为可写，或打开一个可写的副本。</translation>
    </message>
    <message>
        <source>Not everything can be searched: {why}</source>
        <translation>并非所有内容都可搜索：{why}</translation>
    </message>
    <message>
        <source>Not put back, because they were changed since: {paths}</source>
        <translation>未还原，因为此后已被更改：{paths}</translation>
    </message>
    <message>
        <source>Not run: the tool “{name}” is another one now, it was changed after the call was made. Look at what it says of itself, then call again if it is still needed.</source>
        <translation>未运行：工具“{name}”现在已不是原来的工具，它在调用发出后被更改。请查看其说明，如仍需要，再次调用。</translation>
    </message>
    <message>
        <source>Not run: the tool “{name}” is no longer there. Either the server that offers it has ended. It is started when it is needed: call again. Or it was turned off or removed after the call was made: if it is missing then too, find another way, or have it turned on in the settings.</source>
        <translation>未运行：工具“{name}”已不存在。可能是提供它的服务器已结束；需要时会启动，请再次调用。也可能是在调用发出后被关闭或移除；如果届时仍没有，请另找办法，或在设置中将其开启。</translation>
    </message>
    <message>
        <source>Noted in the file that was imported: {note}</source>
        <translation>导入的文件中注明：{note}</translation>
    </message>
    <message>
        <source>Nothing could be summarised.</source>
        <translation>没有可以总结的内容。</translation>
    </message>
    <message>
        <source>Nothing is lost.</source>
        <translation>没有任何内容丢失。</translation>
    </message>
    <message>
        <source>Nothing is saved until its content can be copied. Check the disk and its free space; the program tries again by itself.</source>
        <translation>在其内容能够保留为副本之前，不会保存任何内容。请检查磁盘及其可用空间；程序会自动重试。</translation>
    </message>
    <message>
        <source>Nothing on this system can hold the command to reading, so it was not run. Call again: the person is asked then.</source>
        <translation>此系统上没有任何机制能将该命令限制为只读，因此未运行。请再次调用：届时会询问用户。</translation>
    </message>
    <message>
        <source>Nothing stands before the question, so there is nothing to keep.</source>
        <translation>问题之前没有内容，因此没有可保留的。</translation>
    </message>
    <message>
        <source>Nothing was asked yet.</source>
        <translation>尚未提出任何问题。</translation>
    </message>
    <message>
        <source>Older messages were summarised for the model, to make room. You still see all of them.</source>
        <translation>为腾出空间，已为模型总结较早的消息。您仍可看到全部消息。</translation>
    </message>
    <message>
        <source>Older pictures are not sent: this model takes fewer of them in one conversation.</source>
        <translation>较早的图片不会发送：此模型在一个对话中接受的图片较少。</translation>
    </message>
    <message>
        <source>On Windows nothing confines a command, so each one is asked about, and no rule can allow it.</source>
        <translation>在 Windows 上命令不受隔离，因此每条命令都会询问，任何规则都无法允许它。</translation>
    </message>
    <message>
        <source>One event of the answer was damaged and could not be read. Something may be missing.</source>
        <translation>回答中的一个事件已损坏，无法读取。可能缺少一些内容。</translation>
    </message>
    <message>
        <source>Only a message of the user can be asked.</source>
        <translation>只有用户的消息可以被询问。</translation>
    </message>
    <message>
        <source>Only a prompt can wait.</source>
        <translation>只有提示词可以等待。</translation>
    </message>
    <message>
        <source>Only answers can be regenerated.</source>
        <translation>只有回答可以重新生成。</translation>
    </message>
    <message>
        <source>Only numbers can be computed.</source>
        <translation>只能计算数字。</translation>
    </message>
    <message>
        <source>Only the choices are an answer to this question.</source>
        <translation>此问题只能用选项回答。</translation>
    </message>
    <message>
        <source>Only the first of several frames is kept.</source>
        <translation>只保留多帧中的第一帧。</translation>
    </message>
    <message>
        <source>Only the name of an attached file is kept: the export does not contain the file.</source>
        <translation>某个附加文件只保留了名称：导出中没有该文件。</translation>
    </message>
    <message>
        <source>Only the person can allow this host, in Settings → Network. Ask them, or use a public server.</source>
        <translation>只有用户可以在“设置 → 网络”中允许此主机。请询问用户，或使用公共服务器。</translation>
    </message>
    <message>
        <source>Only the root agent can ask for another mode.</source>
        <translation>只有顶层智能体可以请求其他模式。</translation>
    </message>
    <message>
        <source>Only the root agent can ask the person.</source>
        <translation>只有顶层智能体可以询问用户。</translation>
    </message>
    <message>
        <source>Only what you wrote can be edited.</source>
        <translation>只有您写的内容可以编辑。</translation>
    </message>
    <message>
        <source>Open another conversation there or close the window, then try again.</source>
        <translation>请在那里打开其他对话或关闭该窗口，然后重试。</translation>
    </message>
    <message>
        <source>Open it again, and go on there.</source>
        <translation>请重新打开它，并在其中继续。</translation>
    </message>
    <message>
        <source>Open it in a browser.</source>
        <translation>请在浏览器中打开。</translation>
    </message>
    <message>
        <source>Open it in an image viewer, save it again and attach the copy.</source>
        <translation>请用图像查看器打开，重新保存并附加该副本。</translation>
    </message>
    <message>
        <source>Open the address in a browser.</source>
        <translation>请在浏览器中打开该地址。</translation>
    </message>
    <message>
        <source>Open the conversation again; it is then as it is on the disk.</source>
        <translation>请重新打开对话；它会与磁盘上的一致。</translation>
    </message>
    <message>
        <source>PNG, JPEG, GIF and WebP can be.</source>
        <translation>可以使用 PNG、JPEG、GIF 和 WebP。</translation>
    </message>
    <message>
        <source>Pictures from before are not sent: this model does not read them.</source>
        <translation>先前的图片不会发送：此模型不读取图片。</translation>
    </message>
    <message>
        <source>Pictures on the web are not sent: this server does not fetch them.</source>
        <translation>网络上的图片不会发送：此服务器不获取它们。</translation>
    </message>
    <message>
        <source>Pictures that are damaged, too large, or only named.</source>
        <translation>已损坏、过大或只有名称的图片。</translation>
    </message>
    <message>
        <source>Plan</source>
        <translation>计划</translation>
    </message>
    <message>
        <source>Port {port} belongs to a service that is not the web.</source>
        <translation>端口 {port} 属于网页以外的服务。</translation>
    </message>
    <message>
        <source>Put Message.tool_results([...]) at the end.</source>
        <translation>请将 Message.tool_results([...]) 放在末尾。</translation>
    </message>
    <message>
        <source>Put instructions, tools or earlier messages before it.</source>
        <translation>请在其前面放置指令、工具或更早的消息。</translation>
    </message>
    <message>
        <source>Put it somewhere else.</source>
        <translation>请放到别处。</translation>
    </message>
    <message>
        <source>Put the file back by hand from a copy of your own.</source>
        <translation>请用您自己的副本手动还原该文件。</translation>
    </message>
    <message>
        <source>Put the file back; nothing new is saved until then. Copy what you need from open conversations.</source>
        <translation>请将文件放回原处；在此之前不会保存任何新内容。请从打开的对话中复制您需要的内容。</translation>
    </message>
    <message>
        <source>Put them into the proxy&apos;s address, in the system&apos;s settings or in the environment (http_proxy, https_proxy, all_proxy): http://name:password@host:port.</source>
        <translation>请在系统设置或环境变量（http_proxy、https_proxy、all_proxy）中将其写入代理服务器的地址：http://名称:密码@主机:端口。</translation>
    </message>
    <message>
        <source>Raise the budget in Settings, or ask anyway.</source>
        <translation>请在“设置”中提高预算，或仍然询问。</translation>
    </message>
    <message>
        <source>Read a file</source>
        <translation>读取文件</translation>
    </message>
    <message>
        <source>Read a web page</source>
        <translation>读取网页</translation>
    </message>
    <message>
        <source>Read it again.</source>
        <translation>请重新读取。</translation>
    </message>
    <message>
        <source>Read it in one task.</source>
        <translation>请在一个任务中读取。</translation>
    </message>
    <message>
        <source>Read it to its end, or stop it with interrupt() first.</source>
        <translation>请读到末尾，或先用 interrupt() 停止。</translation>
    </message>
    <message>
        <source>Read the conversation with History.messages(), which has the bytes.</source>
        <translation>请用 History.messages() 读取对话，它带有字节。</translation>
    </message>
    <message>
        <source>Read the file again and copy the text from it.</source>
        <translation>请重新读取文件，并从中复制文本。</translation>
    </message>
    <message>
        <source>Read the new messages, and send yours again if it still fits.</source>
        <translation>请阅读新消息，如仍合适再重新发送您的消息。</translation>
    </message>
    <message>
        <source>Read them in one task.</source>
        <translation>请在一个任务中读取它们。</translation>
    </message>
    <message>
        <source>Reading the page at “{address}” took longer than {seconds} seconds.</source>
        <translation>读取“{address}”处的页面超过了 {seconds} 秒。</translation>
    </message>
    <message>
        <source>Reasoning cannot be switched off at the level “{level}”; the model reasons.</source>
        <translation>在级别“{level}”下无法关闭推理；模型会推理。</translation>
    </message>
    <message>
        <source>Reasoning cannot be turned on or off here for “{model}”, so the model decides.</source>
        <translation>这里无法选择“{model}”是否推理，因此由它自行决定。</translation>
    </message>
    <message>
        <source>Reasoning has levels here: {tokens} tokens became “{effort}”.</source>
        <translation>这里的推理分级别：{tokens} 个 token 变为“{effort}”。</translation>
    </message>
    <message>
        <source>Reasoning only between calls cannot be asked for here, so the model decides.</source>
        <translation>这里无法请求只在调用之间推理，因此由模型决定。</translation>
    </message>
    <message>
        <source>Reasoning starts with the next question: it cannot be switched on between tool calls.</source>
        <translation>推理从下一个问题开始：无法在工具调用之间开启。</translation>
    </message>
    <message>
        <source>Remove attachments or send smaller ones.</source>
        <translation>请移除附件，或发送较小的附件。</translation>
    </message>
    <message>
        <source>Remove it first, or choose another id.</source>
        <translation>请先将其移除，或选择其他 ID。</translation>
    </message>
    <message>
        <source>Remove it first, or choose another name.</source>
        <translation>请先将其移除，或选择其他名称。</translation>
    </message>
    <message>
        <source>Remove one of them.</source>
        <translation>请移除其中一项。</translation>
    </message>
    <message>
        <source>Remove some of them.</source>
        <translation>请移除其中一些。</translation>
    </message>
    <message>
        <source>Remove some, or make them smaller.</source>
        <translation>请移除一些，或将其缩小。</translation>
    </message>
    <message>
        <source>Remove the part before the @.</source>
        <translation>请删除 @ 之前的部分。</translation>
    </message>
    <message>
        <source>Replaces the binary file “{path}” ({size} bytes) with this text:

{text}</source>
        <translation>用以下文本替换二进制文件“{path}”（{size} 字节）：

{text}</translation>
    </message>
    <message>
        <source>Replaces “{path}” ({size} characters) with this text:

{text}</source>
        <translation>用以下文本替换“{path}”（{size} 个字符）：

{text}</translation>
    </message>
    <message>
        <source>Restore into a new folder; then nothing can be overwritten.</source>
        <translation>请还原到新文件夹；这样不会覆盖任何内容。</translation>
    </message>
    <message>
        <source>Restore it first.</source>
        <translation>请先还原它。</translation>
    </message>
    <message>
        <source>Results of calls that are missing.</source>
        <translation>缺失的调用结果。</translation>
    </message>
    <message>
        <source>Return the answer; show progress by RunningCall.</source>
        <translation>请返回回答；用 RunningCall 显示进度。</translation>
    </message>
    <message>
        <source>Rules that cannot be read and no longer apply: {count}. Check your rules, and add what is missing again.</source>
        <translation>无法读取且不再有效的规则：{count}。请检查您的规则，并重新设定缺少的规则。</translation>
    </message>
    <message>
        <source>Rules that deny or ask and are only partly understood: {count}. They now apply to more calls than before. Check your rules, and add them again as you want them.</source>
        <translation>只能部分理解的拒绝或询问规则：{count}。它们适用的调用比以前更多。请检查您的规则，并按您的意愿重新设定。</translation>
    </message>
    <message>
        <source>Run a command</source>
        <translation>运行命令</translation>
    </message>
    <message>
        <source>Run its command in a terminal to see why; correct it with Edit, then press Test.</source>
        <translation>请在终端中运行其命令以了解原因；通过“编辑”更正，然后按“测试”。</translation>
    </message>
    <message>
        <source>Run pip install &apos;desktop-agent[{extra}]&apos;.</source>
        <translation>请运行 pip install &apos;desktop-agent[{extra}]&apos;。</translation>
    </message>
    <message>
        <source>Save a copy without the password, and attach that.</source>
        <translation>请另存一份不带密码的副本，然后附加该副本。</translation>
    </message>
    <message>
        <source>Save it as UTF-8.</source>
        <translation>请以 UTF-8 保存。</translation>
    </message>
    <message>
        <source>Saved conversations can still be read. Saving continues by itself when the problem is solved.</source>
        <translation>已保存的对话仍可读取。问题解决后会自动继续保存。</translation>
    </message>
    <message>
        <source>Say why it is needed and let the person change the mode.</source>
        <translation>请说明需要的理由，并让用户切换模式。</translation>
    </message>
    <message>
        <source>Scaled from {before} to {after} pixels: models take up to {limit} pixels on the longer edge.</source>
        <translation>已从 {before} 缩小到 {after} 像素：模型的较长边最多接受 {limit} 像素。</translation>
    </message>
    <message>
        <source>Scroll up to it, then ask again.</source>
        <translation>请向上滚动到它，然后再次询问。</translation>
    </message>
    <message>
        <source>Search in files</source>
        <translation>在文件中搜索</translation>
    </message>
    <message>
        <source>Select two conversations or more.</source>
        <translation>请选择两个或更多对话。</translation>
    </message>
    <message>
        <source>Send a message of the person.</source>
        <translation>请发送用户的消息。</translation>
    </message>
    <message>
        <source>Send it again as a new message if it is still needed.</source>
        <translation>如仍需要，请作为新消息重新发送。</translation>
    </message>
    <message>
        <source>Send the message again: the model is then loaded again.</source>
        <translation>请重新发送消息：届时会重新加载模型。</translation>
    </message>
    <message>
        <source>Send the same words as a new message.</source>
        <translation>请将同样的文字作为新消息发送。</translation>
    </message>
    <message>
        <source>Send them or remove them, then edit the earlier one.</source>
        <translation>请发送或移除它们，然后编辑较早的消息。</translation>
    </message>
    <message>
        <source>Shorten it.</source>
        <translation>请缩短它。</translation>
    </message>
    <message>
        <source>Shorten them.</source>
        <translation>请缩短。</translation>
    </message>
    <message>
        <source>Sign in again in the settings of the server.</source>
        <translation>请在服务器的设置中重新登录。</translation>
    </message>
    <message>
        <source>Sign in again.</source>
        <translation>请重新登录。</translation>
    </message>
    <message>
        <source>Something went wrong inside the program ({kind}).</source>
        <translation>程序内部出错（{kind}）。</translation>
    </message>
    <message>
        <source>Start a new conversation, or choose a model with a larger context.</source>
        <translation>请开始新对话，或选择上下文更大的模型。</translation>
    </message>
    <message>
        <source>Start a new conversation, or remove some of the pictures.</source>
        <translation>请开始新对话，或移除一些图片。</translation>
    </message>
    <message>
        <source>Start it again.</source>
        <translation>请重新启动。</translation>
    </message>
    <message>
        <source>Start it, or correct its address with Edit; then press Test.</source>
        <translation>请启动它，或通过“编辑”更正其地址；然后按“测试”。</translation>
    </message>
    <message>
        <source>Stopped</source>
        <translation>已停止</translation>
    </message>
    <message>
        <source>Submit results when ToolCallsRequested has come.</source>
        <translation>请在 ToolCallsRequested 到来后提交结果。</translation>
    </message>
    <message>
        <source>Submit the results of all calls together.</source>
        <translation>请一起提交所有调用的结果。</translation>
    </message>
    <message>
        <source>Summaries of older messages, which are all here.</source>
        <translation>较早消息的摘要，这些消息都在这里。</translation>
    </message>
    <message>
        <source>Tags are given in the window.</source>
        <translation>标签在窗口中添加。</translation>
    </message>
    <message>
        <source>Tags that were too long, too many or the same were left out or cut.</source>
        <translation>过长、过多或相同的标签已被省略或截断。</translation>
    </message>
    <message>
        <source>The API key contains characters that no key can have.</source>
        <translation>API 密钥中有密钥不会包含的字符。</translation>
    </message>
    <message>
        <source>The API key was not accepted: {message}</source>
        <translation>API 密钥未被接受：{message}</translation>
    </message>
    <message>
        <source>The address answered, but not like a model server: {message}</source>
        <translation>该地址有应答，但不像模型服务器：{message}</translation>
    </message>
    <message>
        <source>The address carries a name or a password. Nothing of that kind is sent.</source>
        <translation>该地址带有名称或密码。此类内容不会发送。</translation>
    </message>
    <message>
        <source>The address holds a user name or password.</source>
        <translation>该地址包含用户名或密码。</translation>
    </message>
    <message>
        <source>The address is long: it may send data of the conversation to the server.</source>
        <translation>该地址很长：它可能会把对话中的数据发送给服务器。</translation>
    </message>
    <message>
        <source>The address redirects without end.</source>
        <translation>该地址无休止地重定向。</translation>
    </message>
    <message>
        <source>The agent changed the mode to “{mode}”.</source>
        <translation>智能体已将模式切换为“{mode}”。</translation>
    </message>
    <message>
        <source>The agent is at another turn by now.</source>
        <translation>智能体现在已处于另一轮。</translation>
    </message>
    <message>
        <source>The agent made this very call {count} times in a row.</source>
        <translation>智能体连续 {count} 次发出了完全相同的调用。</translation>
    </message>
    <message>
        <source>The answer before is not finished.</source>
        <translation>之前的回答尚未完成。</translation>
    </message>
    <message>
        <source>The answer broke off before its end: {message}</source>
        <translation>回答在结束前中断：{message}</translation>
    </message>
    <message>
        <source>The answer ended for a reason that this version does not know.</source>
        <translation>回答已结束，但此版本无法识别其原因。</translation>
    </message>
    <message>
        <source>The answer ended for a reason that this version does not know: “{reason}”.</source>
        <translation>回答已结束，但此版本无法识别其原因：“{reason}”。</translation>
    </message>
    <message>
        <source>The answer is empty.</source>
        <translation>回答为空。</translation>
    </message>
    <message>
        <source>The answer is longer than what is taken in.</source>
        <translation>回答超出了可接受的长度。</translation>
    </message>
    <message>
        <source>The answer is longer than {limit} characters.</source>
        <translation>回答超过 {limit} 个字符。</translation>
    </message>
    <message>
        <source>The answer of the server “{server}” is too large to be read; its work may have taken effect.</source>
        <translation>服务器“{server}”的回答过大，无法读取；它所做的操作可能已经生效。</translation>
    </message>
    <message>
        <source>The answer of “{host}” does not describe a version.</source>
        <translation>“{host}”发来的内容没有描述任何版本。</translation>
    </message>
    <message>
        <source>The answer of “{host}” is packed in a way that cannot be read.</source>
        <translation>“{host}”的应答的打包方式无法读取。</translation>
    </message>
    <message>
        <source>The answer of “{host}” is too large to describe a version.</source>
        <translation>“{host}”发来的内容过大，不是版本描述。</translation>
    </message>
    <message>
        <source>The answer so far is kept. Try again for a complete answer.</source>
        <translation>目前为止的回答已保留。要获得完整回答，请重试。</translation>
    </message>
    <message>
        <source>The answer&apos;s limit leaves no room for reasoning, so none was asked for.</source>
        <translation>回答的限制没有留出推理的空间，因此未请求推理。</translation>
    </message>
    <message>
        <source>The arguments are nested too deep to be checked.</source>
        <translation>参数嵌套过深，无法检查。</translation>
    </message>
    <message>
        <source>The arguments are not a JSON object, so the call was not run. Write them again.</source>
        <translation>参数不是 JSON 对象，因此未运行该调用。请重新编写。</translation>
    </message>
    <message>
        <source>The arguments cannot be checked against the tool&apos;s schema ({kind}).</source>
        <translation>无法根据工具的架构检查参数（{kind}）。</translation>
    </message>
    <message>
        <source>The arguments do not fit. {problems}</source>
        <translation>参数不符合要求。{problems}</translation>
    </message>
    <message>
        <source>The arguments of a tool are an object: its schema says “type”: “object”.</source>
        <translation>工具的参数是对象：其架构中应有“type”: “object”。</translation>
    </message>
    <message>
        <source>The budget for reasoning was changed to {tokens} tokens, which is what fits.</source>
        <translation>推理预算已改为可容纳的 {tokens} 个 token。</translation>
    </message>
    <message>
        <source>The budget of money for this month is used up.</source>
        <translation>本月的金额预算已用完。</translation>
    </message>
    <message>
        <source>The budget of money for today is used up.</source>
        <translation>今日的金额预算已用完。</translation>
    </message>
    <message>
        <source>The budget of tokens for this month is used up.</source>
        <translation>本月的 token 预算已用完。</translation>
    </message>
    <message>
        <source>The budget of tokens for today is used up.</source>
        <translation>今日的 token 预算已用完。</translation>
    </message>
    <message>
        <source>The cache lifetime of “{model}” cannot be chosen.</source>
        <translation>无法选择“{model}”的缓存有效期。</translation>
    </message>
    <message>
        <source>The call could not be judged. {words}</source>
        <translation>无法判断该调用。{words}</translation>
    </message>
    <message>
        <source>The call has no name, is incomplete, or may be a part of the one beside it, so it was not run. Call again, one at a time.</source>
        <translation>该调用没有名称、不完整，或可能是相邻调用的一部分，因此未运行。请重新调用，每次一个。</translation>
    </message>
    <message>
        <source>The call of “{tool}” was broken off, so it is not known whether it took effect.</source>
        <translation>对“{tool}”的调用被中断，因此不知道是否已生效。</translation>
    </message>
    <message>
        <source>The call on “{path}” never ended, so it is not known who changed the file since. It was left as it is.</source>
        <translation>对“{path}”的调用从未结束，因此不知道此后是谁更改了该文件。它保持原样。</translation>
    </message>
    <message>
        <source>The call was stopped before it did anything.</source>
        <translation>该调用在进行任何操作之前已被停止。</translation>
    </message>
    <message>
        <source>The command can reach only {hosts}.</source>
        <translation>命令只能访问 {hosts}。</translation>
    </message>
    <message>
        <source>The command can use the whole network and the services of this computer: this system cannot limit it to the hosts that it names.</source>
        <translation>命令可以使用整个网络以及此计算机的服务：此系统无法将其限制为它指明的主机。</translation>
    </message>
    <message>
        <source>The command can write only in the workspace and in a temporary folder of its own.</source>
        <translation>命令只能在工作文件夹和自己的临时文件夹中写入。</translation>
    </message>
    <message>
        <source>The command has a null character in it, which no command line can hold.</source>
        <translation>命令中含有空字符，命令行无法容纳它。</translation>
    </message>
    <message>
        <source>The command is too long for a command line.</source>
        <translation>命令过长，命令行无法容纳。</translation>
    </message>
    <message>
        <source>The command ran longer than {seconds} s and was ended, with all that it had started. Until then it wrote:
{output}
{done}
</source>
        <translation>该命令运行超过 {seconds} 秒，已连同其启动的一切一并结束。在此之前它输出了：
{output}
{done}
</translation>
    </message>
    <message>
        <source>The content of “{file}” is run by {program} {when}, without any confinement.</source>
        <translation>{when}，“{file}”中的内容会由 {program} 运行，且完全不受隔离。</translation>
    </message>
    <message>
        <source>The conversation has become longer than this model can read.</source>
        <translation>对话已超过此模型可读取的长度。</translation>
    </message>
    <message>
        <source>The conversation was changed meanwhile.</source>
        <translation>对话在此期间已更改。</translation>
    </message>
    <message>
        <source>The conversation went on meanwhile.</source>
        <translation>对话在此期间已继续。</translation>
    </message>
    <message>
        <source>The conversations are in use by another program.</source>
        <translation>另一个程序正在使用这些对话。</translation>
    </message>
    <message>
        <source>The conversations cannot be compacted while another program has them open.</source>
        <translation>另一个程序打开对话期间，无法压缩对话。</translation>
    </message>
    <message>
        <source>The conversations could not be read or written.</source>
        <translation>无法读取或写入对话。</translation>
    </message>
    <message>
        <source>The conversations in “{path}” are damaged.</source>
        <translation>“{path}”中的对话已损坏。</translation>
    </message>
    <message>
        <source>The conversations in “{path}” were saved by a newer version.</source>
        <translation>“{path}”中的对话由较新版本保存。</translation>
    </message>
    <message>
        <source>The copy “{path}” could not be verified and was removed.</source>
        <translation>副本“{path}”无法验证，已被移除。</translation>
    </message>
    <message>
        <source>The disk is full; “{path}” was not written.</source>
        <translation>磁盘已满；“{path}”未写入。</translation>
    </message>
    <message>
        <source>The disk refused this for a while; it is saved now.</source>
        <translation>磁盘曾一度拒绝写入；现在已保存。</translation>
    </message>
    <message>
        <source>The effect of this call cannot be shown ({kind}).</source>
        <translation>无法显示此调用的效果（{kind}）。</translation>
    </message>
    <message>
        <source>The expression is not written in a way that can be computed.</source>
        <translation>该表达式的写法无法计算。</translation>
    </message>
    <message>
        <source>The expression uses something that this calculator does not know.</source>
        <translation>该表达式使用了此计算器无法识别的内容。</translation>
    </message>
    <message>
        <source>The file ends in the middle of it.</source>
        <translation>文件在中途结束。</translation>
    </message>
    <message>
        <source>The file has {count} lines; there is no line {start}.</source>
        <translation>文件有 {count} 行；没有第 {start} 行。</translation>
    </message>
    <message>
        <source>The file system of “{folder}” has no locks, so two programs could write the same conversation at once.</source>
        <translation>“{folder}”的文件系统不支持锁，因此两个程序可能同时写入同一对话。</translation>
    </message>
    <message>
        <source>The file there is not a PNG, JPEG, GIF or WebP image.</source>
        <translation>那里的内容不是 PNG、JPEG、GIF 或 WebP 图片。</translation>
    </message>
    <message>
        <source>The folder of “{path}” cannot be written to.</source>
        <translation>“{path}”所在的文件夹无法写入。</translation>
    </message>
    <message>
        <source>The format is not clear.</source>
        <translation>格式不明确。</translation>
    </message>
    <message>
        <source>The guard “{name}” was removed: {reason}</source>
        <translation>守卫“{name}”已移除：{reason}</translation>
    </message>
    <message>
        <source>The history is not open: use `async with History() as history`.</source>
        <translation>历史记录未打开：请使用 `async with History() as history`。</translation>
    </message>
    <message>
        <source>The instructions of this folder are too long.</source>
        <translation>此文件夹的指令太长。</translation>
    </message>
    <message>
        <source>The key can be kept in memory until the program is closed.</source>
        <translation>密钥可保留在内存中，直到程序关闭。</translation>
    </message>
    <message>
        <source>The keyring could not be used.</source>
        <translation>无法使用密钥环。</translation>
    </message>
    <message>
        <source>The keyring does not answer; it may be waiting to be unlocked.</source>
        <translation>密钥环没有响应；可能正在等待解锁。</translation>
    </message>
    <message>
        <source>The keyring is locked.</source>
        <translation>密钥环已锁定。</translation>
    </message>
    <message>
        <source>The last answer is complete, so there is nothing to try again.</source>
        <translation>上一个回答是完整的，因此没有可重试的内容。</translation>
    </message>
    <message>
        <source>The level of reasoning “{level}” is not taken here; “{sent}” was asked for instead.</source>
        <translation>这里不接受推理级别“{level}”；改为请求“{sent}”。</translation>
    </message>
    <message>
        <source>The link “{path}” leads to nothing: its disk may not be mounted.</source>
        <translation>链接“{path}”指向的位置不存在：可能磁盘尚未挂载。</translation>
    </message>
    <message>
        <source>The message is empty.</source>
        <translation>消息没有内容。</translation>
    </message>
    <message>
        <source>The message was not sent: {reason}</source>
        <translation>消息未发送：{reason}</translation>
    </message>
    <message>
        <source>The mode stays “{mode}”.</source>
        <translation>模式保持为“{mode}”。</translation>
    </message>
    <message>
        <source>The mode “{mode}” denies calls that change something.</source>
        <translation>模式“{mode}”拒绝会更改内容的调用。</translation>
    </message>
    <message>
        <source>The mode “{title}” was removed, so “{now}” holds here. Choose another mode if you like.</source>
        <translation>模式“{title}”已移除，因此这里使用“{now}”。如有需要，请选择其他模式。</translation>
    </message>
    <message>
        <source>The mode “{title}” was removed. What it denied is still denied here, and you are asked about what it allowed. You can choose another mode at any time.</source>
        <translation>模式“{title}”已移除。它拒绝的操作在这里仍会被拒绝，它允许的操作会询问您。您可以随时选择其他模式。</translation>
    </message>
    <message>
        <source>The model can go on from here.</source>
        <translation>模型可以从这里继续。</translation>
    </message>
    <message>
        <source>The model declined to answer.</source>
        <translation>模型拒绝回答。</translation>
    </message>
    <message>
        <source>The model ended its answer without saying anything.</source>
        <translation>模型没有说任何内容就结束了回答。</translation>
    </message>
    <message>
        <source>The model file “{model}” is no longer chosen.</source>
        <translation>模型文件“{model}”已不再被选用。</translation>
    </message>
    <message>
        <source>The model is still working.</source>
        <translation>模型仍在工作。</translation>
    </message>
    <message>
        <source>The model lacks the file “{name}”.</source>
        <translation>模型缺少文件“{name}”。</translation>
    </message>
    <message>
        <source>The model server could not be reached: {message}</source>
        <translation>无法连接模型服务器：{message}</translation>
    </message>
    <message>
        <source>The model server reported: {message}</source>
        <translation>模型服务器报告：{message}</translation>
    </message>
    <message>
        <source>The model server took too long: {message}</source>
        <translation>模型服务器耗时过长：{message}</translation>
    </message>
    <message>
        <source>The model wrote a call that its own server could not read.</source>
        <translation>模型写出了其自身服务器无法读取的调用。</translation>
    </message>
    <message>
        <source>The model&apos;s longest answer is {tokens} tokens, so no more were asked for.</source>
        <translation>该模型的回答最长为 {tokens} 个 token，因此没有请求更多。</translation>
    </message>
    <message>
        <source>The model&apos;s server sent something that is not JSON.</source>
        <translation>模型的服务器发送了不是 JSON 的内容。</translation>
    </message>
    <message>
        <source>The model&apos;s server sent something that is not part of an answer ({kind}).</source>
        <translation>模型的服务器发送了不属于回答的内容（{kind}）。</translation>
    </message>
    <message>
        <source>The name is written with letters that may look like others; to the network it is {host}.</source>
        <translation>该名称使用了可能与其他字母相似的字母；对网络而言它是 {host}。</translation>
    </message>
    <message>
        <source>The name of “{path}” on the disk has bytes that are not text.</source>
        <translation>“{path}”在磁盘上的名称不是文本。</translation>
    </message>
    <message>
        <source>The name “{path}” is too long for this disk.</source>
        <translation>名称“{path}”对此磁盘来说过长。</translation>
    </message>
    <message>
        <source>The old text and the new text are the same; nothing would change.</source>
        <translation>旧文本和新文本相同；不会有任何更改。</translation>
    </message>
    <message>
        <source>The old text is in “{path}” {count} times, at {lines}.</source>
        <translation>旧文本在“{path}”中出现 {count} 次，位于 {lines}。</translation>
    </message>
    <message>
        <source>The old text is not in “{path}”.</source>
        <translation>旧文本不在“{path}”中。</translation>
    </message>
    <message>
        <source>The oldest conversations of other programs are not searched, because there are too many of them.</source>
        <translation>其他程序最早的对话不会被搜索，因为数量过多。</translation>
    </message>
    <message>
        <source>The page at “{address}” could not be read.</source>
        <translation>无法读取“{address}”处的页面。</translation>
    </message>
    <message>
        <source>The page has {count} characters; there is no character {start}.</source>
        <translation>页面有 {count} 个字符；没有第 {start} 个字符。</translation>
    </message>
    <message>
        <source>The page is larger than {limit}.</source>
        <translation>页面大于 {limit}。</translation>
    </message>
    <message>
        <source>The parameter “{name}” of the tool “{tool}” cannot be given by name.</source>
        <translation>工具“{tool}”的参数“{name}”无法按名称提供。</translation>
    </message>
    <message>
        <source>The parameter “{name}” of the tool “{tool}” has no type.</source>
        <translation>工具“{tool}”的参数“{name}”没有类型。</translation>
    </message>
    <message>
        <source>The parameters of the tool “{tool}” cannot be written as JSON: {why}</source>
        <translation>工具“{tool}”的参数无法写成 JSON：{why}</translation>
    </message>
    <message>
        <source>The path “{path}” is too long for this system.</source>
        <translation>路径“{path}”对此系统来说过长。</translation>
    </message>
    <message>
        <source>The pattern of names is empty.</source>
        <translation>名称模式为空。</translation>
    </message>
    <message>
        <source>The pattern of names is too long or has too many stars in it.</source>
        <translation>名称模式过长，或其中的星号过多。</translation>
    </message>
    <message>
        <source>The picture is damaged and cannot be read.</source>
        <translation>图片已损坏，无法读取。</translation>
    </message>
    <message>
        <source>The picture is labelled {claimed} but contains {found}.</source>
        <translation>图片标注为 {claimed}，但包含的是 {found}。</translation>
    </message>
    <message>
        <source>The picture is larger than {limit}.</source>
        <translation>图片大于 {limit}。</translation>
    </message>
    <message>
        <source>The picture is not a PNG, JPEG, GIF or WebP image.</source>
        <translation>图片不是 PNG、JPEG、GIF 或 WebP 格式。</translation>
    </message>
    <message>
        <source>The picture is stored elsewhere.</source>
        <translation>图片存放在别处。</translation>
    </message>
    <message>
        <source>The picture “{name}”</source>
        <translation>图片“{name}”</translation>
    </message>
    <message>
        <source>The picture “{name}” is damaged and cannot be read.</source>
        <translation>图片“{name}”已损坏，无法读取。</translation>
    </message>
    <message>
        <source>The picture “{name}” is larger than {limit}.</source>
        <translation>图片“{name}”大于 {limit}。</translation>
    </message>
    <message>
        <source>The picture “{name}” is not a PNG, JPEG, GIF or WebP image.</source>
        <translation>图片“{name}”不是 PNG、JPEG、GIF 或 WebP 格式。</translation>
    </message>
    <message>
        <source>The pictures of this conversation are together larger than 100 MB.</source>
        <translation>此对话的图片合计超过 100 MB。</translation>
    </message>
    <message>
        <source>The program could not be ended.</source>
        <translation>无法结束该程序。</translation>
    </message>
    <message>
        <source>The program that runs “{name}”, by its first line (#!), is not installed.</source>
        <translation>“{name}”第一行 (#!) 指定的运行程序未安装。</translation>
    </message>
    <message>
        <source>The program tries again by itself, in case the file is still being written. If that does not help, close the program and start it again: it then carries over what can be read.</source>
        <translation>程序会自动重试，以防文件仍在写入。如果一直如此，请关闭程序并重新启动：届时它会沿用可以读取的内容。</translation>
    </message>
    <message>
        <source>The program was killed the last time, and “{log}”, which had the newest messages, was removed since then. Some messages may be missing.</source>
        <translation>程序上次被强制结束，此后存有最新消息的“{log}”被移除。可能缺少一些消息。</translation>
    </message>
    <message>
        <source>The program was not started, because its child processes could not be ended later ({function}).</source>
        <translation>程序未启动：无法确保结束它启动的所有进程（{function}）。</translation>
    </message>
    <message>
        <source>The program works with the new file from now on.</source>
        <translation>程序从现在起使用新文件。</translation>
    </message>
    <message>
        <source>The program “{name}” could not be started: {why}.</source>
        <translation>无法启动程序“{name}”：{why}。</translation>
    </message>
    <message>
        <source>The program “{name}” may not be run.</source>
        <translation>不允许运行程序“{name}”。</translation>
    </message>
    <message>
        <source>The prompt before this answer is not in memory.</source>
        <translation>此回答之前的提示词不在内存中。</translation>
    </message>
    <message>
        <source>The prompt is empty.</source>
        <translation>提示词没有内容。</translation>
    </message>
    <message>
        <source>The provider&apos;s content filter withheld the rest of this answer.</source>
        <translation>提供商的内容过滤器扣留了此回答的其余部分。</translation>
    </message>
    <message>
        <source>The proxy of this system does not connect to “{host}” ({status}).</source>
        <translation>此系统的代理服务器未连接到“{host}”（{status}）。</translation>
    </message>
    <message>
        <source>The proxy that is set has no usable address.</source>
        <translation>所设置的代理服务器没有可用的地址。</translation>
    </message>
    <message>
        <source>The proxy that is set is of a kind that is not supported ({kind}).</source>
        <translation>所设置的代理服务器类型不受支持（{kind}）。</translation>
    </message>
    <message>
        <source>The question is empty.</source>
        <translation>问题没有内容。</translation>
    </message>
    <message>
        <source>The question was not answered.</source>
        <translation>问题未得到回答。</translation>
    </message>
    <message>
        <source>The regular expression cannot be read: {why}.</source>
        <translation>无法读取该正则表达式：{why}。</translation>
    </message>
    <message>
        <source>The request may be billed already, so it was not sent again by itself. Try again, or ask another server.</source>
        <translation>该请求可能已经计费，因此没有自动重新发送。请重试，或询问其他服务器。</translation>
    </message>
    <message>
        <source>The request may be billed already, so it was not sent again by itself. Try again, or raise the time limit in the settings if this model is slow to start.</source>
        <translation>该请求可能已经计费，因此没有自动重新发送。请重试；如果此模型启动较慢，请在设置中提高时间限制。</translation>
    </message>
    <message>
        <source>The request names no host that can exist.</source>
        <translation>请求中的主机不可能存在。</translation>
    </message>
    <message>
        <source>The request was not sent to “{host}”, because it contains a secret for another server.</source>
        <translation>请求未发送到“{host}”，因为其中包含用于另一台服务器的机密。</translation>
    </message>
    <message>
        <source>The rest of this file is damaged and cannot be read.</source>
        <translation>此文件的其余部分已损坏，无法读取。</translation>
    </message>
    <message>
        <source>The result is not a finite number.</source>
        <translation>结果不是有限数。</translation>
    </message>
    <message>
        <source>The result is not a real number.</source>
        <translation>结果不是实数。</translation>
    </message>
    <message>
        <source>The results are missing.</source>
        <translation>缺少结果。</translation>
    </message>
    <message>
        <source>The rule could not be taken back and still holds: {why}</source>
        <translation>规则无法撤回，仍然有效：{why}</translation>
    </message>
    <message>
        <source>The rules could not be applied to this call in time, so you decide.</source>
        <translation>未能及时对此调用应用规则，因此由您决定。</translation>
    </message>
    <message>
        <source>The runtime runs these tools itself.</source>
        <translation>这些工具由运行时自己运行。</translation>
    </message>
    <message>
        <source>The saved conversations are damaged. What can be read of them is shown (conversations: {conversations}, messages: {messages}).</source>
        <translation>已保存的对话已损坏。其中可读取的内容已显示（{conversations} 个对话，{messages} 条消息）。</translation>
    </message>
    <message>
        <source>The saved conversations must be repaired or upgraded, but {who} has them open.</source>
        <translation>已保存的对话需要修复或升级，但 {who} 正在使用它们。</translation>
    </message>
    <message>
        <source>The saved conversations were checked; nothing is wrong with them.</source>
        <translation>已检查已保存的对话；没有任何问题。</translation>
    </message>
    <message>
        <source>The saved conversations were damaged. The damaged file was kept as “{name}”; what could be read was carried over (conversations: {conversations}, messages: {messages}). If something is missing, a backup may have it: Settings → Storage.</source>
        <translation>已保存的对话曾损坏。损坏的文件已保留为“{name}”；已沿用可以读取的 {conversations} 个对话，含 {messages} 条消息。如果缺少内容，备份中可能有：设置 → 存储。</translation>
    </message>
    <message>
        <source>The schema of a tool and the parameters of its function do not fit: {names}.</source>
        <translation>工具的架构与其函数的参数不匹配：{names}。</translation>
    </message>
    <message>
        <source>The schema of a tool&apos;s arguments cannot be used: {why}.</source>
        <translation>工具参数的架构无法使用：{why}。</translation>
    </message>
    <message>
        <source>The search broke off before its end.</source>
        <translation>搜索在结束前中断。</translation>
    </message>
    <message>
        <source>The server accepts only registered programs ({why}).</source>
        <translation>服务器只接受已登记的程序（{why}）。</translation>
    </message>
    <message>
        <source>The server asks for a wait of more than a week; choose another model or server.</source>
        <translation>服务器要求等待一周以上；请选择其他模型或服务器。</translation>
    </message>
    <message>
        <source>The server asks to wait {hours} hours; try again then.</source>
        <translation>服务器要求等待 {hours} 小时；请届时重试。</translation>
    </message>
    <message>
        <source>The server asks to wait {minutes} minutes; try again then.</source>
        <translation>服务器要求等待 {minutes} 分钟；请届时重试。</translation>
    </message>
    <message>
        <source>The server did not accept earlier reasoning, so the question was sent without it.</source>
        <translation>服务器不接受先前的推理，因此提问时未带推理。</translation>
    </message>
    <message>
        <source>The server did not end its answer.</source>
        <translation>服务器没有结束其回答。</translation>
    </message>
    <message>
        <source>The server for signing in could not be reached ({why}).</source>
        <translation>无法连接登录服务器（{why}）。</translation>
    </message>
    <message>
        <source>The server gave no token ({why}).</source>
        <translation>服务器没有提供令牌（{why}）。</translation>
    </message>
    <message>
        <source>The server gave no token.</source>
        <translation>服务器没有提供令牌。</translation>
    </message>
    <message>
        <source>The server has no name.</source>
        <translation>服务器没有名称。</translation>
    </message>
    <message>
        <source>The server has no secret “{name}”.</source>
        <translation>服务器没有机密“{name}”。</translation>
    </message>
    <message>
        <source>The server of “{model}” ended by itself.</source>
        <translation>“{model}”的服务器自行结束了。</translation>
    </message>
    <message>
        <source>The server of “{model}” ended while it answered.</source>
        <translation>“{model}”的服务器在回答时结束了。</translation>
    </message>
    <message>
        <source>The server redirects to another one, “{host}”, which is not allowed.</source>
        <translation>服务器重定向到另一台服务器“{host}”，这是不允许的。</translation>
    </message>
    <message>
        <source>The server refused reasoning of earlier turns, so it was asked once more without that reasoning.</source>
        <translation>服务器拒绝了先前各轮的推理，因此去掉该推理后又询问了一次。</translation>
    </message>
    <message>
        <source>The server repeated parts of its answer. They are shown once.</source>
        <translation>服务器反复发送了回答的某些部分。这些部分只显示一次。</translation>
    </message>
    <message>
        <source>The server said that the model calls a tool, but no call came.</source>
        <translation>服务器称模型调用了工具，但没有收到调用。</translation>
    </message>
    <message>
        <source>The server sent something too large to be a token.</source>
        <translation>服务器提供的内容过大，不可能是令牌。</translation>
    </message>
    <message>
        <source>The server wants an API key: {message}</source>
        <translation>服务器需要 API 密钥：{message}</translation>
    </message>
    <message>
        <source>The server “{server}” cannot be taken over: {why}.</source>
        <translation>无法导入服务器“{server}”：{why}。</translation>
    </message>
    <message>
        <source>The server “{server}” could not be reached: {why}</source>
        <translation>无法连接服务器“{server}”：{why}</translation>
    </message>
    <message>
        <source>The server “{server}” could not be started: {why}</source>
        <translation>无法启动服务器“{server}”：{why}</translation>
    </message>
    <message>
        <source>The server “{server}” describes its tools at such length that {n} of them are left out.</source>
        <translation>服务器“{server}”对其工具的描述过长，因此省略了其中 {n} 个。</translation>
    </message>
    <message>
        <source>The server “{server}” does not answer.</source>
        <translation>服务器“{server}”没有应答。</translation>
    </message>
    <message>
        <source>The server “{server}” ended by itself; it is started again when it is needed.</source>
        <translation>服务器“{server}”自行结束；需要时会重新启动。</translation>
    </message>
    <message>
        <source>The server “{server}” ended while it was asked; what it was doing may have taken effect.</source>
        <translation>服务器“{server}”在被询问时结束；它正在进行的操作可能已经生效。</translation>
    </message>
    <message>
        <source>The server “{server}” has two tools named “{tool}”.</source>
        <translation>服务器“{server}”有两个名为“{tool}”的工具。</translation>
    </message>
    <message>
        <source>The server “{server}” is not set up for signing in.</source>
        <translation>服务器“{server}”未设置登录。</translation>
    </message>
    <message>
        <source>The server “{server}” is still starting; its tools come when it is there.</source>
        <translation>服务器“{server}”仍在启动；就绪后即可使用其工具。</translation>
    </message>
    <message>
        <source>The server “{server}” refused: {why}</source>
        <translation>服务器“{server}”拒绝：{why}</translation>
    </message>
    <message>
        <source>The server “{server}” wants to know who you are: turn on signing in, or correct its key.</source>
        <translation>服务器“{server}”要求确认您的身份：请开启登录，或更正其密钥。</translation>
    </message>
    <message>
        <source>The server “{server}” wants you to allow more than when you signed in.</source>
        <translation>服务器“{server}”希望您允许比登录时更多的权限。</translation>
    </message>
    <message>
        <source>The server “{server}” was removed meanwhile.</source>
        <translation>服务器“{server}”在此期间已被移除。</translation>
    </message>
    <message>
        <source>The server “{server}” was turned off, removed or changed before it answered.</source>
        <translation>服务器“{server}”在答复之前被关闭、移除或更改。</translation>
    </message>
    <message>
        <source>The server “{title}” is no longer set up.</source>
        <translation>服务器“{title}”已不再设置。</translation>
    </message>
    <message>
        <source>The server&apos;s address is empty.</source>
        <translation>服务器的地址为空。</translation>
    </message>
    <message>
        <source>The server&apos;s final answer differs from what it sent before. The first version is shown.</source>
        <translation>服务器的最终回答与先前发送的不同。显示的是第一个版本。</translation>
    </message>
    <message>
        <source>The server&apos;s information about signing in is contradictory ({why}).</source>
        <translation>服务器有关登录的说明自相矛盾（{why}）。</translation>
    </message>
    <message>
        <source>The setting “{title}” had a value that cannot be used; it has its default.</source>
        <translation>设置“{title}”的值无法使用；已使用默认值。</translation>
    </message>
    <message>
        <source>The settings are damaged, and the file cannot be set aside. All of them have their defaults.</source>
        <translation>设置已损坏，且无法将该文件另行保存。全部使用默认值。</translation>
    </message>
    <message>
        <source>The settings of the server “{server}” were changed meanwhile.</source>
        <translation>服务器“{server}”的设置在此期间已更改。</translation>
    </message>
    <message>
        <source>The settings were damaged. The file was kept as “{name}”, and all settings have their defaults.</source>
        <translation>设置曾损坏。该文件已保留为“{name}”，所有设置均使用默认值。</translation>
    </message>
    <message>
        <source>The sign-in page has an address that is not allowed.</source>
        <translation>登录页面的地址不被允许。</translation>
    </message>
    <message>
        <source>The sign-in server does not support protected sign-ins (PKCE, S256).</source>
        <translation>登录服务器不支持受保护的登录（PKCE、S256）。</translation>
    </message>
    <message>
        <source>The sign-in to the server “{server}” is no longer valid.</source>
        <translation>服务器“{server}”的登录已失效。</translation>
    </message>
    <message>
        <source>The sign-in to “{host}” could not be renewed: its sign-in server cannot be reached.</source>
        <translation>无法续订“{host}”的登录：无法连接其登录服务器。</translation>
    </message>
    <message>
        <source>The sign-in to “{host}” is being renewed by another window of the program, which does not finish.</source>
        <translation>“{host}”的登录正由本程序的另一个窗口续订，但迟迟没有完成。</translation>
    </message>
    <message>
        <source>The sign-in took too long.</source>
        <translation>登录耗时过长。</translation>
    </message>
    <message>
        <source>The sign-in was refused ({word}).</source>
        <translation>登录被拒绝（{word}）。</translation>
    </message>
    <message>
        <source>The specialist “{name}” did not finish.</source>
        <translation>专家“{name}”没有完成。</translation>
    </message>
    <message>
        <source>The specialist “{name}” ended without saying anything.</source>
        <translation>专家“{name}”没有说任何内容就结束了。</translation>
    </message>
    <message>
        <source>The specialist “{name}” failed: {why}</source>
        <translation>专家“{name}”失败：{why}</translation>
    </message>
    <message>
        <source>The specialist “{name}” has no tools, but asked for one.</source>
        <translation>专家“{name}”没有工具，却请求了一个。</translation>
    </message>
    <message>
        <source>The specialist “{name}” stopped at a limit: {which}.</source>
        <translation>专家“{name}”因达到限制而停止：{which}。</translation>
    </message>
    <message>
        <source>The specialist “{name}” was stopped by the person.</source>
        <translation>专家“{name}”已被用户停止。</translation>
    </message>
    <message>
        <source>The store is closed.</source>
        <translation>存储已关闭。</translation>
    </message>
    <message>
        <source>The system does not permit access to “{path}”.</source>
        <translation>系统不允许访问“{path}”。</translation>
    </message>
    <message>
        <source>The text of “{name}” is too long to be attached.</source>
        <translation>“{name}”的文本太长，无法附加。</translation>
    </message>
    <message>
        <source>The tool failed.</source>
        <translation>工具失败。</translation>
    </message>
    <message>
        <source>The tool failed: {words}</source>
        <translation>工具失败：{words}</translation>
    </message>
    <message>
        <source>The tool gave back something that cannot be written as JSON.</source>
        <translation>工具返回了无法写成 JSON 的内容。</translation>
    </message>
    <message>
        <source>The tool gave back something that is nested too deep.</source>
        <translation>工具返回了嵌套过深的内容。</translation>
    </message>
    <message>
        <source>The tool itself must be corrected.</source>
        <translation>需要修复的是工具本身。</translation>
    </message>
    <message>
        <source>The tool ran, but answered with something that cannot be written as JSON ({kind}).</source>
        <translation>工具已运行，但其应答无法写成 JSON（{kind}）。</translation>
    </message>
    <message>
        <source>The tool “{name}” may not be used here.</source>
        <translation>此处不能使用工具“{name}”。</translation>
    </message>
    <message>
        <source>The tool “{tool}” of the server “{server}” cannot be used: {why}</source>
        <translation>服务器“{server}”的工具“{tool}”无法使用：{why}</translation>
    </message>
    <message>
        <source>The tool “{tool}” of the server “{server}” has a new description. The server says that the tool only reads, and you trust the server: turn that off in its settings if you do not expect this.</source>
        <translation>服务器“{server}”的工具“{tool}”有了新的描述。服务器称该工具只读取，而您信任该服务器：如果这不符合您的预期，请在其设置中关闭信任。</translation>
    </message>
    <message>
        <source>The tool “{tool}” of the server “{server}” has a new description: rules that allowed the tool no longer apply.</source>
        <translation>服务器“{server}”的工具“{tool}”有了新的描述：允许它的规则已失效。</translation>
    </message>
    <message>
        <source>The tool “{tool}” takes the running call twice.</source>
        <translation>工具“{tool}”两次接收正在运行的调用。</translation>
    </message>
    <message>
        <source>The tool “{tool}” that could undo it is not there any more.</source>
        <translation>可以撤销它的工具“{tool}”已不存在。</translation>
    </message>
    <message>
        <source>The type hints of the tool “{tool}” cannot be read: {why}.</source>
        <translation>无法读取工具“{tool}”的类型注解：{why}。</translation>
    </message>
    <message>
        <source>The type of the argument “{name}” cannot be written as JSON.</source>
        <translation>参数“{name}”的类型无法写成 JSON。</translation>
    </message>
    <message>
        <source>The type of the argument “{name}” is “{word}”, which is not a type.</source>
        <translation>参数“{name}”的类型是“{word}”，这不是类型。</translation>
    </message>
    <message>
        <source>The value of “{name}” is empty, or has more than one line.</source>
        <translation>“{name}”的值为空，或不止一行。</translation>
    </message>
    <message>
        <source>The value of “{name}” is not in the keyring.</source>
        <translation>“{name}”的值不在密钥环中。</translation>
    </message>
    <message>
        <source>The workspace contains your home folder: the command can read all of that, except the usual places of keys, passwords, mail and browsers.</source>
        <translation>工作文件夹中包含您的主文件夹：命令可以读取其中的全部内容，但密钥、密码、邮件和浏览器的常见位置除外。</translation>
    </message>
    <message>
        <source>The workspace folder itself cannot be deleted.</source>
        <translation>不能删除工作文件夹本身。</translation>
    </message>
    <message>
        <source>The workspace folder “{path}” is not there any more.</source>
        <translation>工作文件夹“{path}”已不存在。</translation>
    </message>
    <message>
        <source>The workspace has too many files or repositories to find every Git repository. Commands may change the hooks and settings of some, and you are not told.</source>
        <translation>工作文件夹中的文件或仓库过多，无法找到每个 Git 仓库。命令可能会更改其中一些的钩子和设置，而您不会得到通知。</translation>
    </message>
    <message>
        <source>There are no readable conversations in “{folder}”.</source>
        <translation>“{folder}”中没有可读取的对话。</translation>
    </message>
    <message>
        <source>There are no saved conversations in “{folder}”.</source>
        <translation>“{folder}”中没有已保存的对话。</translation>
    </message>
    <message>
        <source>There are no “mcpServers” in this JSON.</source>
        <translation>此 JSON 中没有“mcpServers”。</translation>
    </message>
    <message>
        <source>There are two tools named “{name}”.</source>
        <translation>有两个名为“{name}”的工具。</translation>
    </message>
    <message>
        <source>There is a “{path}” already.</source>
        <translation>已有“{path}”。</translation>
    </message>
    <message>
        <source>There is no PowerShell on this system.</source>
        <translation>此系统上没有 PowerShell。</translation>
    </message>
    <message>
        <source>There is no answer to this yet.</source>
        <translation>对此还没有回答。</translation>
    </message>
    <message>
        <source>There is no conversation “{id}”.</source>
        <translation>没有对话“{id}”。</translation>
    </message>
    <message>
        <source>There is no folder “{path}” to run a program in.</source>
        <translation>没有可供程序运行的文件夹“{path}”。</translation>
    </message>
    <message>
        <source>There is no folder “{path}” to work in.</source>
        <translation>没有可供工作的文件夹“{path}”。</translation>
    </message>
    <message>
        <source>There is no folder “{path}”.</source>
        <translation>没有文件夹“{path}”。</translation>
    </message>
    <message>
        <source>There is no guard “{name}”.</source>
        <translation>没有守卫“{name}”。</translation>
    </message>
    <message>
        <source>There is no home folder for “{path}”.</source>
        <translation>没有与“{path}”对应的主文件夹。</translation>
    </message>
    <message>
        <source>There is no llama.cpp server on this computer.</source>
        <translation>此计算机上没有 llama.cpp 服务器。</translation>
    </message>
    <message>
        <source>There is no message “{id}” in this conversation.</source>
        <translation>此对话中没有消息“{id}”。</translation>
    </message>
    <message>
        <source>There is no mode “{name}” any more, so “{title}” holds. Choose another mode.</source>
        <translation>模式“{name}”已不存在，因此使用“{title}”。请选择其他模式。</translation>
    </message>
    <message>
        <source>There is no mode “{name}”.</source>
        <translation>没有模式“{name}”。</translation>
    </message>
    <message>
        <source>There is no program “{name}”.</source>
        <translation>没有程序“{name}”。</translation>
    </message>
    <message>
        <source>There is no room left on the disk of “{path}”.</source>
        <translation>“{path}”所在磁盘没有剩余空间。</translation>
    </message>
    <message>
        <source>There is no sandbox on Windows.</source>
        <translation>Windows 上没有沙盒。</translation>
    </message>
    <message>
        <source>There is no server “{server}” that is on.</source>
        <translation>没有已开启的服务器“{server}”。</translation>
    </message>
    <message>
        <source>There is no such checkpoint in this conversation.</source>
        <translation>此对话中没有这样的检查点。</translation>
    </message>
    <message>
        <source>There is no such folder any more.</source>
        <translation>该文件夹已不存在。</translation>
    </message>
    <message>
        <source>There is no such message in this conversation.</source>
        <translation>此对话中没有这样的消息。</translation>
    </message>
    <message>
        <source>There is no tool named “{name}”.</source>
        <translation>没有名为“{name}”的工具。</translation>
    </message>
    <message>
        <source>There is no tool “{name}”. The tools are: {names}.</source>
        <translation>没有工具“{name}”。可用的工具有：{names}。</translation>
    </message>
    <message>
        <source>There is no tool “{name}”; this conversation has no tools.</source>
        <translation>没有工具“{name}”；此对话没有工具。</translation>
    </message>
    <message>
        <source>There is no workspace for this rule to hold in.</source>
        <translation>没有可供此规则生效的工作文件夹。</translation>
    </message>
    <message>
        <source>There is no “{path}” in the workspace.</source>
        <translation>工作文件夹中没有“{path}”。</translation>
    </message>
    <message>
        <source>There is nothing to answer: the conversation has no words yet.</source>
        <translation>没有可回答的内容：对话中还没有文字。</translation>
    </message>
    <message>
        <source>There is nothing to export.</source>
        <translation>没有可导出的内容。</translation>
    </message>
    <message>
        <source>There is nothing to look for.</source>
        <translation>没有要查找的内容。</translation>
    </message>
    <message>
        <source>There is nothing to merge.</source>
        <translation>没有可合并的内容。</translation>
    </message>
    <message>
        <source>There is nothing to summarise yet.</source>
        <translation>还没有可总结的内容。</translation>
    </message>
    <message>
        <source>There is nothing to try again.</source>
        <translation>没有可重试的内容。</translation>
    </message>
    <message>
        <source>These are too many servers at once.</source>
        <translation>一次的服务器过多。</translation>
    </message>
    <message>
        <source>These files could not be put back: {paths}</source>
        <translation>这些文件无法还原：{paths}</translation>
    </message>
    <message>
        <source>These files were not put back, and are as they were left or changed since:</source>
        <translation>以下文件未还原，仍是留下时或此后更改过的样子：</translation>
    </message>
    <message>
        <source>These files were put back:</source>
        <translation>以下文件已还原：</translation>
    </message>
    <message>
        <source>They are not a JSON object.</source>
        <translation>它们不是 JSON 对象。</translation>
    </message>
    <message>
        <source>They cannot be used ({kind}).</source>
        <translation>它们无法使用（{kind}）。</translation>
    </message>
    <message>
        <source>This API has no stop sequences, so they were left out.</source>
        <translation>此协议没有停止序列，因此已省略。</translation>
    </message>
    <message>
        <source>This API has no top_k, so it was left out.</source>
        <translation>此协议没有 top_k，因此已省略。</translation>
    </message>
    <message>
        <source>This answer was interrupted.</source>
        <translation>此回答已中断。</translation>
    </message>
    <message>
        <source>This approval was opened before.</source>
        <translation>此批准先前已打开。</translation>
    </message>
    <message>
        <source>This archive claims to contain more than any export does.</source>
        <translation>此压缩包声称包含的内容超过任何导出。</translation>
    </message>
    <message>
        <source>This belongs to another event loop.</source>
        <translation>这属于另一个事件循环。</translation>
    </message>
    <message>
        <source>This build has an unusable address for new versions.</source>
        <translation>此构建中用于查询新版本的地址不可用。</translation>
    </message>
    <message>
        <source>This checkpoint belongs to another folder.</source>
        <translation>此检查点属于另一个文件夹。</translation>
    </message>
    <message>
        <source>This command may not reach {host}. It may reach {hosts}.</source>
        <translation>此命令不得访问 {host}。它可以访问 {hosts}。</translation>
    </message>
    <message>
        <source>This computer offers no safe keyring for API keys.</source>
        <translation>此计算机没有可安全存放 API 密钥的密钥环。</translation>
    </message>
    <message>
        <source>This conversation is being stored just now.</source>
        <translation>此对话正在保存。</translation>
    </message>
    <message>
        <source>This conversation is being worked on by another process.</source>
        <translation>另一个进程正在处理此对话。</translation>
    </message>
    <message>
        <source>This conversation is being worked on by {who} since {since}.</source>
        <translation>{who} 从 {since} 起正在处理此对话。</translation>
    </message>
    <message>
        <source>This conversation is closed.</source>
        <translation>此对话已关闭。</translation>
    </message>
    <message>
        <source>This conversation is in the trash.</source>
        <translation>此对话在回收站中。</translation>
    </message>
    <message>
        <source>This conversation is not in the trash.</source>
        <translation>此对话不在回收站中。</translation>
    </message>
    <message>
        <source>This conversation is only read here.</source>
        <translation>此对话在这里只读。</translation>
    </message>
    <message>
        <source>This conversation of {program} cannot be read: {reason}.</source>
        <translation>无法读取 {program} 的此对话：{reason}。</translation>
    </message>
    <message>
        <source>This cron line never matches a time.</source>
        <translation>此 cron 表达式没有对应的时间。</translation>
    </message>
    <message>
        <source>This folder has too many files.</source>
        <translation>此文件夹中的文件过多。</translation>
    </message>
    <message>
        <source>This is a proxy: it takes CONNECT, and requests with a whole http address.</source>
        <translation>这是代理服务器：它接受 CONNECT，以及带完整 http 地址的请求。</translation>
    </message>
    <message>
        <source>This is closed.</source>
        <translation>这已关闭。</translation>
    </message>
    <message>
        <source>This is never run: {reason} Find another way.</source>
        <translation>这绝不会运行：{reason}请另找办法。</translation>
    </message>
    <message>
        <source>This is not a decision.</source>
        <translation>这不是决定。</translation>
    </message>
    <message>
        <source>This is not a message.</source>
        <translation>这不是消息。</translation>
    </message>
    <message>
        <source>This is not an answer.</source>
        <translation>这不是回答。</translation>
    </message>
    <message>
        <source>This is not valid JSON: line {line} cannot be read.</source>
        <translation>这不是有效的 JSON：无法读取第 {line} 行。</translation>
    </message>
    <message>
        <source>This is too long to be a list of servers.</source>
        <translation>这对服务器列表来说过长。</translation>
    </message>
    <message>
        <source>This message does not wait any more.</source>
        <translation>此消息已不再等待。</translation>
    </message>
    <message>
        <source>This message waits already.</source>
        <translation>此消息已在等待。</translation>
    </message>
    <message>
        <source>This message was sent already.</source>
        <translation>此消息已发送。</translation>
    </message>
    <message>
        <source>This model always reasons; it was asked to reason as little as it can.</source>
        <translation>此模型总会推理；已请求它尽量少推理。</translation>
    </message>
    <message>
        <source>This model cannot be made to call a tool; it was left free to choose.</source>
        <translation>无法强制此模型调用工具；由它自行选择。</translation>
    </message>
    <message>
        <source>This model decides by itself how much to reason.</source>
        <translation>此模型自行决定推理多少。</translation>
    </message>
    <message>
        <source>This model does not go on from an answer of its own; it was asked in words to continue.</source>
        <translation>此模型不会接续自己的回答；已用文字请它继续。</translation>
    </message>
    <message>
        <source>This model does not read pictures.</source>
        <translation>此模型不读取图片。</translation>
    </message>
    <message>
        <source>This model does not reason, so no reasoning was asked for.</source>
        <translation>此模型不推理，因此未请求推理。</translation>
    </message>
    <message>
        <source>This model takes a budget for reasoning instead of a level.</source>
        <translation>此模型使用推理预算，而不是级别。</translation>
    </message>
    <message>
        <source>This model&apos;s reasoning cannot be switched off altogether; it may comment between tool calls.</source>
        <translation>此模型的推理无法完全关闭；它可能在工具调用之间加以说明。</translation>
    </message>
    <message>
        <source>This provider sets its own sampling: {name} was not sent.</source>
        <translation>此提供商自行设定采样：未发送 {name}。</translation>
    </message>
    <message>
        <source>This provider takes JSON by a schema only; JSON was asked for in words.</source>
        <translation>此提供商只接受按架构的 JSON；已用文字请求 JSON。</translation>
    </message>
    <message>
        <source>This question takes one answer.</source>
        <translation>此问题只接受一个回答。</translation>
    </message>
    <message>
        <source>This rule was not proposed for this call.</source>
        <translation>此规则不是为此调用提出的。</translation>
    </message>
    <message>
        <source>This server caches prompts by itself; this cannot be changed.</source>
        <translation>此服务器自行缓存提示词；无法更改。</translation>
    </message>
    <message>
        <source>This server does not accept {names}, so the question was sent without.</source>
        <translation>此服务器不接受 {names}，因此提问时未带这些内容。</translation>
    </message>
    <message>
        <source>This server does not cache prompts on request.</source>
        <translation>此服务器不按请求缓存提示词。</translation>
    </message>
    <message>
        <source>This server does not fetch pictures from the web.</source>
        <translation>此服务器不从网络获取图片。</translation>
    </message>
    <message>
        <source>This server does not read GIF pictures.</source>
        <translation>此服务器不读取 GIF 图片。</translation>
    </message>
    <message>
        <source>This server may store the conversation: it does not accept the request not to.</source>
        <translation>此服务器可能会存储对话：它不接受“不存储”的请求。</translation>
    </message>
    <message>
        <source>This server takes four stop sequences, so the others were left out.</source>
        <translation>此服务器接受四个停止序列，因此省略了其余的。</translation>
    </message>
    <message>
        <source>This system does not let bubblewrap work, and has no Landlock of version 4 or later.</source>
        <translation>此系统不允许 bubblewrap 工作，也没有版本 4 或更高的 Landlock。</translation>
    </message>
    <message>
        <source>This system has no sandbox that can confine commands.</source>
        <translation>此系统没有可隔离命令的沙盒。</translation>
    </message>
    <message>
        <source>This version understands an entry of the setting “{title}” only in part. That part applies.</source>
        <translation>此版本只能理解设置“{title}”的一个条目的一部分。该部分有效。</translation>
    </message>
    <message>
        <source>This was closed before the server answered.</source>
        <translation>在服务器回答之前，此对象已关闭。</translation>
    </message>
    <message>
        <source>Timed out</source>
        <translation>已超时</translation>
    </message>
    <message>
        <source>Too much of it is damaged: the rest was not read.</source>
        <translation>损坏过多：其余部分未读取。</translation>
    </message>
    <message>
        <source>Try again later.</source>
        <translation>请稍后重试。</translation>
    </message>
    <message>
        <source>Try again later; you stay signed in until then.</source>
        <translation>请稍后重试；在此之前您保持登录。</translation>
    </message>
    <message>
        <source>Try again, or open the address in a browser.</source>
        <translation>请重试，或在浏览器中打开该地址。</translation>
    </message>
    <message>
        <source>Try again, or raise the time limit if this model is slow to start.</source>
        <translation>请重试；如果此模型启动较慢，请提高时间限制。</translation>
    </message>
    <message>
        <source>Try again.</source>
        <translation>请重试。</translation>
    </message>
    <message>
        <source>Try again: it starts as it is set up now.</source>
        <translation>请重试：它会按现在的设置启动。</translation>
    </message>
    <message>
        <source>Try again; if it fails again, the conversations themselves may be damaged.</source>
        <translation>请重试；如果再次失败，对话本身可能已损坏。</translation>
    </message>
    <message>
        <source>Try again; if it happens again, look at the server&apos;s own log or status page.</source>
        <translation>请重试；如果再次发生，请查看服务器的日志或状态页面。</translation>
    </message>
    <message>
        <source>Try again; models often get the call right the second time.</source>
        <translation>请重试；模型往往在第二次写对调用。</translation>
    </message>
    <message>
        <source>Try it again, or look in fewer files.</source>
        <translation>请重试，或在较少的文件中查找。</translation>
    </message>
    <message>
        <source>Trying again in {seconds} s.</source>
        <translation>{seconds} 秒后重试。</translation>
    </message>
    <message>
        <source>Trying again.</source>
        <translation>正在重试。</translation>
    </message>
    <message>
        <source>Turn it on in the settings.</source>
        <translation>请在设置中开启它。</translation>
    </message>
    <message>
        <source>Turn it on, then sign in.</source>
        <translation>请将其开启，然后登录。</translation>
    </message>
    <message>
        <source>Turn on signing in, in the settings of the server.</source>
        <translation>请在服务器的设置中开启登录。</translation>
    </message>
    <message>
        <source>Turn prompt caching off for this provider.</source>
        <translation>请为此提供商关闭提示词缓存。</translation>
    </message>
    <message>
        <source>Turned upright, as the camera noted.</source>
        <translation>已按相机的记录转正。</translation>
    </message>
    <message>
        <source>Two modes have the same name.</source>
        <translation>两个模式的名称相同。</translation>
    </message>
    <message>
        <source>Two types of the arguments are both named “{name}”.</source>
        <translation>有两个参数类型都名为“{name}”。</translation>
    </message>
    <message>
        <source>Type one.</source>
        <translation>请输入一个。</translation>
    </message>
    <message>
        <source>Undone by tools:</source>
        <translation>由工具撤销：</translation>
    </message>
    <message>
        <source>Unknown</source>
        <translation>未知</translation>
    </message>
    <message>
        <source>Unlock the keyring and try again, or keep the key in memory until the program is closed.</source>
        <translation>请解锁密钥环后重试，或将密钥保留在内存中，直到程序关闭。</translation>
    </message>
    <message>
        <source>Unlock the keyring and try again, or name the server with --dialect or --base-url and give its key in {variable}.</source>
        <translation>请解锁密钥环后重试，或用 --dialect 或 --base-url 指定服务器，并在 {variable} 中提供其密钥。</translation>
    </message>
    <message>
        <source>Unpack it with its password, and import the file with the conversations.</source>
        <translation>请用密码将其解压，然后导入含有对话的文件。</translation>
    </message>
    <message>
        <source>Unpack it, and import the file with the conversations.</source>
        <translation>请将其解压，然后导入含有对话的文件。</translation>
    </message>
    <message>
        <source>Update the to-do list</source>
        <translation>更新待办列表</translation>
    </message>
    <message>
        <source>Use 1 to 64 letters, digits, _ and -.</source>
        <translation>请使用 1 到 64 个字母、数字、_ 和 -。</translation>
    </message>
    <message>
        <source>Use `async with Client(…)` and await complete().</source>
        <translation>请使用 `async with Client(…)` 并等待 complete()。</translation>
    </message>
    <message>
        <source>Use a PNG, JPEG, GIF or WebP picture.</source>
        <translation>请使用 PNG、JPEG、GIF 或 WebP 图片。</translation>
    </message>
    <message>
        <source>Use a path inside the workspace folder.</source>
        <translation>请使用工作文件夹内的路径。</translation>
    </message>
    <message>
        <source>Use an http or https address of a public server, such as https://example.org/page.</source>
        <translation>请使用公共服务器的 http 或 https 地址，例如 https://example.org/page。</translation>
    </message>
    <message>
        <source>Use an http or https address, or attach the file itself.</source>
        <translation>请使用 http 或 https 地址，或附加文件本身。</translation>
    </message>
    <message>
        <source>Use functions, and types that are defined where the function&apos;s module can see them.</source>
        <translation>请使用在函数所在模块可见之处定义的函数和类型。</translation>
    </message>
    <message>
        <source>Use letters and digits.</source>
        <translation>请使用字母和数字。</translation>
    </message>
    <message>
        <source>Use one of these: {words}.</source>
        <translation>请使用以下之一：{words}。</translation>
    </message>
    <message>
        <source>Wait a moment and try again.</source>
        <translation>请稍候片刻后重试。</translation>
    </message>
    <message>
        <source>Wait a moment, then do it again.</source>
        <translation>请稍候片刻，然后再做一次。</translation>
    </message>
    <message>
        <source>Wait a moment, until it is read again.</source>
        <translation>请稍候片刻，等它重新读取完毕。</translation>
    </message>
    <message>
        <source>Wait a moment.</source>
        <translation>请稍候片刻。</translation>
    </message>
    <message>
        <source>Wait for its answer or stop it, then try again.</source>
        <translation>请等待其回答或将其停止，然后重试。</translation>
    </message>
    <message>
        <source>Wait until it has ended, then try again.</source>
        <translation>请等它结束后重试。</translation>
    </message>
    <message>
        <source>Wait until that program is done.</source>
        <translation>请等该程序完成。</translation>
    </message>
    <message>
        <source>Wait, or open its conversation and stop it.</source>
        <translation>请等待，或打开其对话并停止运行。</translation>
    </message>
    <message>
        <source>Wait, or press Stop first.</source>
        <translation>请等待，或先按“停止”。</translation>
    </message>
    <message>
        <source>Waits for results</source>
        <translation>等待结果</translation>
    </message>
    <message>
        <source>What was sent to {host} is neither TLS nor a request of HTTP as it has to be written, so it was not passed on. Other protocols, ssh among them, do not go through the proxy of this command.</source>
        <translation>发送到 {host} 的内容既不是 TLS，也不是格式正确的 HTTP 请求，因此没有转发。其他协议（包括 ssh）不能通过此命令的代理服务器。</translation>
    </message>
    <message>
        <source>What “{host}” has there is not text: its type is {what}, its size {size} bytes.</source>
        <translation>“{host}”那里的内容不是文本：类型为 {what}，大小为 {size} 字节。</translation>
    </message>
    <message>
        <source>What “{tool}” undid is not redone; only files are restored.</source>
        <translation>“{tool}”撤销的操作不会恢复；只还原文件。</translation>
    </message>
    <message>
        <source>Workspace folders: the conversations start without one here. Choose it again.</source>
        <translation>工作文件夹：对话在这里开始时没有。请重新选择。</translation>
    </message>
    <message>
        <source>Write ** for powers; ^ means something else.</source>
        <translation>乘方请写 **；^ 另有含义。</translation>
    </message>
    <message>
        <source>Write a file</source>
        <translation>写入文件</translation>
    </message>
    <message>
        <source>Write a message first.</source>
        <translation>请先写一条消息。</translation>
    </message>
    <message>
        <source>Write all five.</source>
        <translation>请写全五个字段。</translation>
    </message>
    <message>
        <source>Write it as {“mcpServers”: {“name”: …}}.</source>
        <translation>请写成 {“mcpServers”: {“name”: …}}。</translation>
    </message>
    <message>
        <source>Write it shorter, and without look-around and back references.</source>
        <translation>请写得更短，不要使用环视和反向引用。</translation>
    </message>
    <message>
        <source>Write it to a file, and run that.</source>
        <translation>请将其写入文件，然后运行该文件。</translation>
    </message>
    <message>
        <source>Write it with a name and a type.</source>
        <translation>请写上名称和类型。</translation>
    </message>
    <message>
        <source>Write its name, and before it those of the folders that it is in, with a slash between them.</source>
        <translation>请写出其名称，并在前面写出它所在的各级文件夹，以斜杠分隔。</translation>
    </message>
    <message>
        <source>Write one expression, without assignments.</source>
        <translation>请写一个表达式，不要赋值。</translation>
    </message>
    <message>
        <source>Write something, or delete it.</source>
        <translation>请写些内容，或将其删除。</translation>
    </message>
    <message>
        <source>Write something.</source>
        <translation>请写些内容。</translation>
    </message>
    <message>
        <source>Write the path from the root on.</source>
        <translation>请写出从根目录开始的路径。</translation>
    </message>
    <message>
        <source>Write the program alone as the command, and all that follows as its arguments.</source>
        <translation>命令处只写程序，其后的全部作为参数。</translation>
    </message>
    <message>
        <source>Write what you want next.</source>
        <translation>请写下您接下来想要什么。</translation>
    </message>
    <message>
        <source>You answered: {answer}</source>
        <translation>您的回答：{answer}</translation>
    </message>
    <message>
        <source>You are asked about every call of this tool.</source>
        <translation>此工具的每次调用都会询问您。</translation>
    </message>
    <message>
        <source>Your file “{name}” cannot be used: {why}.</source>
        <translation>您的文件“{name}”无法使用：{why}。</translation>
    </message>
    <message>
        <source>Your file “{name}” is not text in UTF-8.</source>
        <translation>您的文件“{name}”不是 UTF-8 文本。</translation>
    </message>
    <message>
        <source>Your file “{name}” is written in a way that cannot be changed from here.</source>
        <translation>您的文件“{name}”的写法无法从这里更改。</translation>
    </message>
    <message>
        <source>a command that may reach {hosts}</source>
        <translation>可访问 {hosts} 的命令</translation>
    </message>
    <message>
        <source>a hook refused it.</source>
        <translation>被钩子拒绝。</translation>
    </message>
    <message>
        <source>a mode</source>
        <translation>某个模式</translation>
    </message>
    <message>
        <source>a name in its header is too long</source>
        <translation>其文件头中的某个名称过长</translation>
    </message>
    <message>
        <source>a number is too long, or it is nested too deeply</source>
        <translation>某个数字过长，或嵌套过深</translation>
    </message>
    <message>
        <source>an imported conversation</source>
        <translation>一个导入的对话</translation>
    </message>
    <message>
        <source>another format</source>
        <translation>其他格式</translation>
    </message>
    <message>
        <source>another program</source>
        <translation>另一个程序</translation>
    </message>
    <message>
        <source>another program (process {pid})</source>
        <translation>另一个程序（进程 {pid}）</translation>
    </message>
    <message>
        <source>as it was before</source>
        <translation>与之前一样</translation>
    </message>
    <message>
        <source>as it was before it was undone</source>
        <translation>与撤销之前一样</translation>
    </message>
    <message>
        <source>calls of one answer</source>
        <translation>单个回答的调用数</translation>
    </message>
    <message>
        <source>commands that begin with “{command}”</source>
        <translation>以“{command}”开头的命令</translation>
    </message>
    <message>
        <source>cost</source>
        <translation>费用</translation>
    </message>
    <message>
        <source>exactly the command “{command}”</source>
        <translation>与“{command}”完全相同的命令</translation>
    </message>
    <message>
        <source>git, only looking</source>
        <translation>git，仅查看</translation>
    </message>
    <message>
        <source>git, recording (a commit starts the hooks of the repository)</source>
        <translation>git，记录（提交会启动仓库的钩子）</translation>
    </message>
    <message>
        <source>it asked for a tool of the server in a way that cannot be read.</source>
        <translation>它请求服务器工具的方式无法读取。</translation>
    </message>
    <message>
        <source>it cannot be opened</source>
        <translation>无法打开</translation>
    </message>
    <message>
        <source>it did not answer in HTTP</source>
        <translation>它没有以 HTTP 回答</translation>
    </message>
    <message>
        <source>it did not answer within {n} seconds</source>
        <translation>它在 {n} 秒内没有应答</translation>
    </message>
    <message>
        <source>it did not answer within {n} seconds, and wrote “{words}” where only messages of the protocol belong</source>
        <translation>它在 {n} 秒内没有应答，并在只应出现协议消息的地方输出了“{words}”</translation>
    </message>
    <message>
        <source>it does not answer</source>
        <translation>它没有应答</translation>
    </message>
    <message>
        <source>it does not begin like one</source>
        <translation>其开头不符合该格式</translation>
    </message>
    <message>
        <source>it ended again</source>
        <translation>它又结束了</translation>
    </message>
    <message>
        <source>it ended with the exit code {code}, and said nothing</source>
        <translation>它以退出代码 {code} 结束，没有任何输出</translation>
    </message>
    <message>
        <source>it ended with the exit code {code}: {words}</source>
        <translation>它以退出代码 {code} 结束：{words}</translation>
    </message>
    <message>
        <source>it ends in its header</source>
        <translation>文件在文件头中就已结束</translation>
    </message>
    <message>
        <source>it has both a command and an address</source>
        <translation>它既有命令又有地址</translation>
    </message>
    <message>
        <source>it has neither a command nor an address</source>
        <translation>它既没有命令也没有地址</translation>
    </message>
    <message>
        <source>it has no name.</source>
        <translation>它没有名称。</translation>
    </message>
    <message>
        <source>it holds no JSON, or is nested too deep</source>
        <translation>其内容不是 JSON，或嵌套过深</translation>
    </message>
    <message>
        <source>it is a link</source>
        <translation>它是链接</translation>
    </message>
    <message>
        <source>it is not a SQLite database</source>
        <translation>它不是 SQLite 数据库</translation>
    </message>
    <message>
        <source>it is not a description of a tool.</source>
        <translation>这不是工具的描述。</translation>
    </message>
    <message>
        <source>it is not an object with “command” or “url”</source>
        <translation>它不是含“command”或“url”的对象</translation>
    </message>
    <message>
        <source>it is not an ordinary file</source>
        <translation>它不是普通文件</translation>
    </message>
    <message>
        <source>it is not in the newest backup</source>
        <translation>它不在最新的备份中</translation>
    </message>
    <message>
        <source>it is not there any more</source>
        <translation>它已不存在</translation>
    </message>
    <message>
        <source>it is said to be split into too many files</source>
        <translation>其标明的分割文件过多</translation>
    </message>
    <message>
        <source>it is too large</source>
        <translation>它过大</translation>
    </message>
    <message>
        <source>it points to another address</source>
        <translation>它指向另一个地址</translation>
    </message>
    <message>
        <source>it points to another address, at {host}</source>
        <translation>它指向位于 {host} 的另一个地址</translation>
    </message>
    <message>
        <source>it sent a web page</source>
        <translation>它发送了网页</translation>
    </message>
    <message>
        <source>it sent text that no model server sends</source>
        <translation>它发送了模型服务器不会发送的文本</translation>
    </message>
    <message>
        <source>it was empty</source>
        <translation>内容为空</translation>
    </message>
    <message>
        <source>it was ended by the signal {code}</source>
        <translation>它被信号 {code} 结束</translation>
    </message>
    <message>
        <source>its address holds a name or a password</source>
        <translation>其地址包含名称或密码</translation>
    </message>
    <message>
        <source>its argument “{argument}” holds a secret</source>
        <translation>其参数“{argument}”包含机密</translation>
    </message>
    <message>
        <source>its arguments cannot be passed on</source>
        <translation>无法传递其参数</translation>
    </message>
    <message>
        <source>its body is compressed in a way that was not asked for ({encoding})</source>
        <translation>其内容的压缩方式未经请求（{encoding}）</translation>
    </message>
    <message>
        <source>its compressed body is damaged</source>
        <translation>其压缩内容已损坏</translation>
    </message>
    <message>
        <source>its database is damaged ({words})</source>
        <translation>数据库已损坏（{words}）</translation>
    </message>
    <message>
        <source>its header has a value of an unknown type</source>
        <translation>其文件头中有未知类型的值</translation>
    </message>
    <message>
        <source>its header has too many entries</source>
        <translation>其文件头中的条目过多</translation>
    </message>
    <message>
        <source>its header is too large</source>
        <translation>其文件头过大</translation>
    </message>
    <message>
        <source>its headers are too long</source>
        <translation>其标头过长</translation>
    </message>
    <message>
        <source>its id is not the name of a file</source>
        <translation>其 ID 不是文件名</translation>
    </message>
    <message>
        <source>its name cannot be used</source>
        <translation>其名称无法使用</translation>
    </message>
    <message>
        <source>its name holds a secret that was given to the server.</source>
        <translation>其名称包含提供给服务器的机密信息。</translation>
    </message>
    <message>
        <source>its name is too long.</source>
        <translation>其名称过长。</translation>
    </message>
    <message>
        <source>its program is running, and its database is too large to be copied</source>
        <translation>所属程序正在运行，且其数据库过大，无法复制</translation>
    </message>
    <message>
        <source>its program is writing to it</source>
        <translation>所属程序正在写入</translation>
    </message>
    <message>
        <source>its schema is nested too deep.</source>
        <translation>其架构嵌套过深。</translation>
    </message>
    <message>
        <source>its type “sse” is an old way of connecting</source>
        <translation>其类型“sse”是旧的连接方式</translation>
    </message>
    <message>
        <source>its version of the format is not known</source>
        <translation>其格式版本未知</translation>
    </message>
    <message>
        <source>its “args” are not a list of texts</source>
        <translation>其“args”不是文本列表</translation>
    </message>
    <message>
        <source>its “command” is not the name of a program</source>
        <translation>其“command”不是程序名称</translation>
    </message>
    <message>
        <source>its “url” is not a web address</source>
        <translation>其“url”不是网址</translation>
    </message>
    <message>
        <source>its “{part}” is not an object of names and texts</source>
        <translation>其“{part}”不是由名称和文本组成的对象</translation>
    </message>
    <message>
        <source>line {line} is not text in UTF-8</source>
        <translation>第 {line} 行不是 UTF-8 文本</translation>
    </message>
    <message>
        <source>llama.cpp caches the last prompt by itself.</source>
        <translation>llama.cpp 会自行缓存最近的提示词。</translation>
    </message>
    <message>
        <source>llama.cpp could not load “{model}”.</source>
        <translation>llama.cpp 无法加载“{model}”。</translation>
    </message>
    <message>
        <source>no connection to {where}</source>
        <translation>无法连接到 {where}</translation>
    </message>
    <message>
        <source>no connection to {where} within {seconds} seconds</source>
        <translation>{seconds} 秒内未能连接到 {where}</translation>
    </message>
    <message>
        <source>nothing answers at {where}</source>
        <translation>{where} 没有任何应答</translation>
    </message>
    <message>
        <source>nothing listens at {where}</source>
        <translation>{where} 没有服务在监听</translation>
    </message>
    <message>
        <source>one event is larger than {size} MB</source>
        <translation>有一个事件大于 {size} MB</translation>
    </message>
    <message>
        <source>one of its headers cannot be sent</source>
        <translation>其某个标头无法发送</translation>
    </message>
    <message>
        <source>pauses of the server in a row</source>
        <translation>服务器连续暂停次数</translation>
    </message>
    <message>
        <source>removed, as it was not there before</source>
        <translation>已删除，因为之前不存在</translation>
    </message>
    <message>
        <source>removed, as it was not there before it was undone</source>
        <translation>已删除，因为撤销之前不存在</translation>
    </message>
    <message>
        <source>ruff, checking and formatting</source>
        <translation>ruff，检查和格式化</translation>
    </message>
    <message>
        <source>the answer is larger than {size} MB</source>
        <translation>回答大于 {size} MB</translation>
    </message>
    <message>
        <source>the answer of {where} was not finished within {seconds} seconds</source>
        <translation>{where} 的回答未在 {seconds} 秒内完成</translation>
    </message>
    <message>
        <source>the answer to caching a prompt is not JSON</source>
        <translation>缓存提示词的应答不是 JSON</translation>
    </message>
    <message>
        <source>the backup is damaged or of another kind</source>
        <translation>备份已损坏或是其他类型</translation>
    </message>
    <message>
        <source>the backup is too large</source>
        <translation>备份过大</translation>
    </message>
    <message>
        <source>the certificate of {host} is not trusted ({why})</source>
        <translation>{host} 的证书不受信任（{why}）</translation>
    </message>
    <message>
        <source>the certificate of “{host}” is not trusted ({why})</source>
        <translation>“{host}”的证书不受信任（{why}）</translation>
    </message>
    <message>
        <source>the certificates of trusted servers cannot be read ({why})</source>
        <translation>无法读取受信任服务器的证书（{why}）</translation>
    </message>
    <message>
        <source>the length of one answer</source>
        <translation>单个回答的长度</translation>
    </message>
    <message>
        <source>the longest answer that the model may give</source>
        <translation>模型可给出的最长回答</translation>
    </message>
    <message>
        <source>the name {host} is not known</source>
        <translation>主机名 {host} 未知</translation>
    </message>
    <message>
        <source>the name “{host}” is not known</source>
        <translation>主机名“{host}”未知</translation>
    </message>
    <message>
        <source>the program</source>
        <translation>程序</translation>
    </message>
    <message>
        <source>the proxy of this system does not connect to “{host}” ({status})</source>
        <translation>此系统的代理服务器未连接到“{host}”（{status}）</translation>
    </message>
    <message>
        <source>the proxy on the way wants a name and a password</source>
        <translation>途中的代理服务器需要用户名和密码</translation>
    </message>
    <message>
        <source>the proxy set for it is of a kind that is not supported ({kind})</source>
        <translation>为其设置的代理服务器类型不受支持（{kind}）</translation>
    </message>
    <message>
        <source>the proxy {proxy} cannot be reached</source>
        <translation>无法连接代理服务器 {proxy}</translation>
    </message>
    <message>
        <source>the proxy {proxy} does not connect to {where} ({status})</source>
        <translation>代理服务器 {proxy} 未连接到 {where}（{status}）</translation>
    </message>
    <message>
        <source>the request is larger than {size} MB</source>
        <translation>请求大于 {size} MB</translation>
    </message>
    <message>
        <source>the request to {where} could not be written</source>
        <translation>无法写入发往 {where} 的请求</translation>
    </message>
    <message>
        <source>the schema of its arguments cannot be read.</source>
        <translation>无法读取其参数的架构。</translation>
    </message>
    <message>
        <source>the schema of its arguments does not say “type”: “object”.</source>
        <translation>其参数的架构中没有“type”: “object”。</translation>
    </message>
    <message>
        <source>the server broke the answer off</source>
        <translation>服务器中断了回答</translation>
    </message>
    <message>
        <source>the server ended the answer with an error</source>
        <translation>服务器以错误结束了回答</translation>
    </message>
    <message>
        <source>the server lost its connection to the model</source>
        <translation>服务器失去了与模型的连接</translation>
    </message>
    <message>
        <source>the server says that the answer failed</source>
        <translation>服务器报告回答失败</translation>
    </message>
    <message>
        <source>the server says that the answer was cancelled</source>
        <translation>服务器报告回答已取消</translation>
    </message>
    <message>
        <source>the server stopped the answer because it ran out of resources</source>
        <translation>服务器因资源不足停止了回答</translation>
    </message>
    <message>
        <source>the stream carried an error without a message</source>
        <translation>流中包含没有说明的错误</translation>
    </message>
    <message>
        <source>the stream ended without {mark}</source>
        <translation>流结束时缺少 {mark}</translation>
    </message>
    <message>
        <source>the window (process {pid})</source>
        <translation>窗口（进程 {pid}）</translation>
    </message>
    <message>
        <source>there is no backup</source>
        <translation>没有备份</translation>
    </message>
    <message>
        <source>there is no route to {where}</source>
        <translation>没有通往 {where} 的路由</translation>
    </message>
    <message>
        <source>there is none for {server} yet.</source>
        <translation>{server} 还没有密钥。</translation>
    </message>
    <message>
        <source>time</source>
        <translation>时间</translation>
    </message>
    <message>
        <source>tokens</source>
        <translation>token</translation>
    </message>
    <message>
        <source>tool rounds</source>
        <translation>工具轮数</translation>
    </message>
    <message>
        <source>turns</source>
        <translation>轮数</translation>
    </message>
    <message>
        <source>what its model can read</source>
        <translation>其模型可读取的内容</translation>
    </message>
    <message>
        <source>what one run may pile up in memory</source>
        <translation>单次运行可占用的内存</translation>
    </message>
    <message>
        <source>you</source>
        <translation>您</translation>
    </message>
    <message>
        <source>{address} answers instead of {first}.</source>
        <translation>应答的是 {address}，而不是 {first}。</translation>
    </message>
    <message>
        <source>{agent} / {step}</source>
        <translation>{agent} / {step}</translation>
    </message>
    <message>
        <source>{commands}, in every folder of the workspace</source>
        <translation>{commands}，在工作文件夹下的每个文件夹中</translation>
    </message>
    <message>
        <source>{commands}, in the folder {folder} of the workspace</source>
        <translation>{commands}，在工作文件夹下的文件夹 {folder} 中</translation>
    </message>
    <message>
        <source>{commands}, in the top folder of the workspace</source>
        <translation>{commands}，直接在工作文件夹中</translation>
    </message>
    <message>
        <source>{count} events of the answer were damaged and could not be read. Something may be missing.</source>
        <translation>回答中的 {count} 个事件已损坏，无法读取。可能缺少一些内容。</translation>
    </message>
    <message>
        <source>{first}, {next}</source>
        <translation>{first}、{next}</translation>
    </message>
    <message>
        <source>{host} could not be reached: {why}.</source>
        <translation>无法连接 {host}：{why}。</translation>
    </message>
    <message>
        <source>{megapixels} megapixels</source>
        <translation>{megapixels} 百万像素</translation>
    </message>
    <message>
        <source>{model} caches no prompts of fewer than {count} tokens.</source>
        <translation>{model} 不缓存少于 {count} 个 token 的提示词。</translation>
    </message>
    <message>
        <source>{model} caches prompts by itself; it cannot be asked to.</source>
        <translation>{model} 会自行缓存提示词；无法要求它这样做。</translation>
    </message>
    <message>
        <source>{model} calls tools by the API “OpenAI Responses” only.</source>
        <translation>{model} 只能通过协议“OpenAI Responses”调用工具。</translation>
    </message>
    <message>
        <source>{model} cannot be bound to JSON.</source>
        <translation>{model} 不能限定为 JSON。</translation>
    </message>
    <message>
        <source>{model} cannot be made to call a tool; it decides by itself.</source>
        <translation>无法强制 {model} 调用工具；由它自行决定。</translation>
    </message>
    <message>
        <source>{model} cannot reason between tools only; it decides by itself.</source>
        <translation>{model} 无法只在工具之间推理；由它自行决定。</translation>
    </message>
    <message>
        <source>{model} cannot stop reasoning; it was asked for its lowest level, {level}.</source>
        <translation>{model} 无法停止推理；已请求其最低级别 {level}。</translation>
    </message>
    <message>
        <source>{model} cannot stop reasoning; it was given its smallest limit, {tokens} tokens.</source>
        <translation>{model} 无法停止推理；已使用其最小限制，{tokens} 个 token。</translation>
    </message>
    <message>
        <source>{model} chooses its own temperature, so none was sent.</source>
        <translation>{model} 自行选择温度，因此没有发送。</translation>
    </message>
    <message>
        <source>{model} does not answer by a schema.</source>
        <translation>{model} 不按架构回答。</translation>
    </message>
    <message>
        <source>{model} does not call tools.</source>
        <translation>{model} 不调用工具。</translation>
    </message>
    <message>
        <source>{model} does not read pictures.</source>
        <translation>{model} 不读取图片。</translation>
    </message>
    <message>
        <source>{model} does not reason, so it was not asked to.</source>
        <translation>{model} 不推理，因此没有请求。</translation>
    </message>
    <message>
        <source>{model} has no reasoning level {asked}; it was asked for {level}.</source>
        <translation>{model} 没有推理级别 {asked}；已请求 {level}。</translation>
    </message>
    <message>
        <source>{model} has no reasoning levels; for {asked} it was given {tokens} tokens.</source>
        <translation>{model} 没有推理级别；对于 {asked}，已给予 {tokens} 个 token。</translation>
    </message>
    <message>
        <source>{model} is served by the API “OpenAI Responses” only.</source>
        <translation>{model} 只能通过协议“OpenAI Responses”使用。</translation>
    </message>
    <message>
        <source>{model} reasons with {least} to {most} tokens; it was given {tokens}.</source>
        <translation>{model} 用 {least} 到 {most} 个 token 推理；已给予 {tokens} 个。</translation>
    </message>
    <message>
        <source>{model} takes no number of tokens to reason with; it was asked for the level {level}.</source>
        <translation>{model} 不接受推理的 token 数；已请求级别 {level}。</translation>
    </message>
    <message>
        <source>{path}: {state}</source>
        <translation>{path}：{state}</translation>
    </message>
    <message>
        <source>{picture} is sent as {after}: this model does not read {before}.</source>
        <translation>{picture}将以 {after} 发送：此模型不读取 {before}。</translation>
    </message>
    <message>
        <source>{picture} is sent with less detail, in {size}: this model takes {limit}.</source>
        <translation>{picture}将以较少的细节发送，大小为 {size}：此模型接受 {limit}。</translation>
    </message>
    <message>
        <source>{picture} is sent with {after} instead of {before} pixels: this model takes no more.</source>
        <translation>{picture}将以 {after} 像素而不是 {before} 像素发送：此模型不接受更多。</translation>
    </message>
    <message>
        <source>{picture} is sent without its movement: this model reads still pictures only.</source>
        <translation>{picture}将不带动画发送：此模型只读取静态图片。</translation>
    </message>
    <message>
        <source>{pixels} pixels beside {count} others</source>
        <translation>与另外 {count} 张图片一起时的 {pixels} 像素</translation>
    </message>
    <message>
        <source>{pixels} pixels on one side</source>
        <translation>单边 {pixels} 像素</translation>
    </message>
    <message>
        <source>{remedy} It can be tried again in {n} s.</source>
        <translation>{remedy}{n} 秒后可以重试。</translation>
    </message>
    <message>
        <source>{remedy} Then import again; what is here already is left alone.</source>
        <translation>{remedy}然后重新导入；已有的对话不受影响。</translation>
    </message>
    <message>
        <source>{remedy} {readable}</source>
        <translation>{remedy}{readable}</translation>
    </message>
    <message>
        <source>{rule}; what comes from there is trusted</source>
        <translation>{rule}；来自那里的内容受信任</translation>
    </message>
    <message>
        <source>{some} and {last}</source>
        <translation>{some}和{last}</translation>
    </message>
    <message>
        <source>{some} or {last}</source>
        <translation>{some}或{last}</translation>
    </message>
    <message>
        <source>{title}: commands that begin with {commands}</source>
        <translation>{title}：以 {commands} 开头的命令</translation>
    </message>
    <message>
        <source>{tool} ({server})</source>
        <translation>{tool}（{server}）</translation>
    </message>
    <message>
        <source>{tool} anywhere in the workspace {folder}</source>
        <translation>{tool}，在工作文件夹 {folder} 的任何位置</translation>
    </message>
    <message>
        <source>{tool} for the workspace {folder}</source>
        <translation>{tool}，用于工作文件夹 {folder}</translation>
    </message>
    <message>
        <source>{tool} in {folder}</source>
        <translation>{tool}，在 {folder} 中</translation>
    </message>
    <message>
        <source>{tool} with any arguments</source>
        <translation>{tool}，任意参数</translation>
    </message>
    <message>
        <source>{tool} with exactly these arguments</source>
        <translation>{tool}，仅限这些参数</translation>
    </message>
    <message>
        <source>{tool} with exactly these arguments: {arguments}</source>
        <translation>{tool}，仅限这些参数：{arguments}</translation>
    </message>
    <message>
        <source>{tool} with {host}</source>
        <translation>{tool}，主机 {host}</translation>
    </message>
    <message>
        <source>{tool} · {arguments}</source>
        <translation>{tool} · {arguments}</translation>
    </message>
    <message>
        <source>{tool}, as it is described now,</source>
        <translation>{tool}（按现在的描述）</translation>
    </message>
    <message>
        <source>{tool}: {outcome}</source>
        <translation>{tool}：{outcome}</translation>
    </message>
    <message>
        <source>{what} ({count} unreadable events)</source>
        <translation>{what}（{count} 个事件无法读取）</translation>
    </message>
    <message>
        <source>{what} The provider says: {why}</source>
        <translation>{what}提供商称：{why}</translation>
    </message>
    <message>
        <source>{what} The provider says: {why} ({category})</source>
        <translation>{what}提供商称：{why}（{category}）</translation>
    </message>
    <message>
        <source>{what} What it said so far:
{said}

</source>
        <translation>{what}它目前所说的内容：
{said}

</translation>
    </message>
    <message>
        <source>{what} needs parts that are not installed.</source>
        <translation>{what}需要尚未安装的部分。</translation>
    </message>
    <message>
        <source>{what} {remedy}</source>
        <translation>{what}{remedy}</translation>
    </message>
    <message>
        <source>{what}.</source>
        <translation>{what}。</translation>
    </message>
    <message>
        <source>{where} broke the rules of HTTP in the middle</source>
        <translation>{where} 中途违反了 HTTP 规则</translation>
    </message>
    <message>
        <source>{where} closed the connection</source>
        <translation>{where} 关闭了连接</translation>
    </message>
    <message>
        <source>{where} closed the connection without an answer</source>
        <translation>{where} 未回答就关闭了连接</translation>
    </message>
    <message>
        <source>{where} did not begin to answer within {seconds} seconds</source>
        <translation>{where} 未在 {seconds} 秒内开始回答</translation>
    </message>
    <message>
        <source>{where} did not take the request for {seconds} seconds</source>
        <translation>{where} 在 {seconds} 秒内未接收请求</translation>
    </message>
    <message>
        <source>{where} does not speak TLS as expected</source>
        <translation>{where} 的 TLS 通信不符合预期</translation>
    </message>
    <message>
        <source>{where} kept the connection open, but sent nothing more of the answer</source>
        <translation>{where} 保持了连接，但没有再发送回答的内容</translation>
    </message>
    <message>
        <source>{where} said nothing for {seconds} seconds</source>
        <translation>{where} 在 {seconds} 秒内没有任何响应</translation>
    </message>
    <message>
        <source>{who} on “{host}”</source>
        <translation>“{host}”上的 {who}</translation>
    </message>
    <message>
        <source>{why} (all {count} addresses were tried)</source>
        <translation>{why}（已尝试全部 {count} 个地址）</translation>
    </message>
    <message>
        <source>{why} Imported before that, and kept: {added}.</source>
        <translation>{why}在此之前已导入并保留：{added}。</translation>
    </message>
    <message>
        <source>“desktop-agent ask” (process {pid})</source>
        <translation>“desktop-agent ask”（进程 {pid}）</translation>
    </message>
    <message>
        <source>“{address}” does not begin with http:// or https://.</source>
        <translation>“{address}”不以 http:// 或 https:// 开头。</translation>
    </message>
    <message>
        <source>“{address}” is not an address.</source>
        <translation>“{address}”不是地址。</translation>
    </message>
    <message>
        <source>“{address}” names no server.</source>
        <translation>“{address}”没有指明服务器。</translation>
    </message>
    <message>
        <source>“{command}”</source>
        <translation>“{command}”</translation>
    </message>
    <message>
        <source>“{database}” is gone, while its log was still there. The log is kept as “{copy}”, and an empty database is begun. If you have the file, close the program, put it back, name the log “{log}” again, and start the program.</source>
        <translation>“{database}”已丢失，但其日志仍在。日志已保留为“{copy}”，并新建了空数据库。如果您有该文件，请关闭程序，将其放回，把日志重新命名为“{log}”，然后启动程序。</translation>
    </message>
    <message>
        <source>“{file}” may be what another program runs: links in the workspace give it too many names to look at.</source>
        <translation>“{file}”可能会被其他程序运行：工作文件夹中的链接使它有太多名称，无法逐一检查。</translation>
    </message>
    <message>
        <source>“{folder}” is not a finished backup.</source>
        <translation>“{folder}”不是完整的备份。</translation>
    </message>
    <message>
        <source>“{folder}” is not empty.</source>
        <translation>“{folder}”不是空的。</translation>
    </message>
    <message>
        <source>“{host}” could not be reached.</source>
        <translation>无法连接“{host}”。</translation>
    </message>
    <message>
        <source>“{host}” does not answer.</source>
        <translation>“{host}”没有应答。</translation>
    </message>
    <message>
        <source>“{host}” has no encrypted address (https).</source>
        <translation>“{host}”没有加密地址 (https)。</translation>
    </message>
    <message>
        <source>“{host}” has no page there (status {status}).</source>
        <translation>“{host}”那里没有页面（状态 {status}）。</translation>
    </message>
    <message>
        <source>“{host}” has no picture there (status {status}).</source>
        <translation>“{host}”那里没有图片（状态 {status}）。</translation>
    </message>
    <message>
        <source>“{host}” is not a public server.</source>
        <translation>“{host}”不是公共服务器。</translation>
    </message>
    <message>
        <source>“{host}” is not a public server: its address is {address}.</source>
        <translation>“{host}”不是公共服务器：其地址是 {address}。</translation>
    </message>
    <message>
        <source>“{host}” leads to the private address {address}. Only the person can allow that host, in Settings → Network.</source>
        <translation>“{host}”通向专用地址 {address}。只有用户可以在“设置 → 网络”中允许该主机。</translation>
    </message>
    <message>
        <source>“{host}” names no version (status {status}).</source>
        <translation>“{host}”没有给出版本（状态 {status}）。</translation>
    </message>
    <message>
        <source>“{host}” redirects to another server, which is not allowed.</source>
        <translation>“{host}”重定向到另一台服务器，这是不允许的。</translation>
    </message>
    <message>
        <source>“{host}” redirects without end.</source>
        <translation>“{host}”无休止地重定向。</translation>
    </message>
    <message>
        <source>“{host}” took longer than {seconds} seconds.</source>
        <translation>“{host}”超过了 {seconds} 秒。</translation>
    </message>
    <message>
        <source>“{model}” always reasons, so it reasons as it does by itself.</source>
        <translation>“{model}”总会推理，因此按其自身方式推理。</translation>
    </message>
    <message>
        <source>“{model}” always reasons, so it reasons at “{effort}”.</source>
        <translation>“{model}”总会推理，因此以“{effort}”推理。</translation>
    </message>
    <message>
        <source>“{model}” answers with at most {most} tokens, so that is the limit.</source>
        <translation>“{model}”的回答最多 {most} 个 token，因此以此为限。</translation>
    </message>
    <message>
        <source>“{model}” cannot be made to call a tool, so it decides by itself.</source>
        <translation>无法强制“{model}”调用工具，因此由它自行决定。</translation>
    </message>
    <message>
        <source>“{model}” does not call tools.</source>
        <translation>“{model}”不调用工具。</translation>
    </message>
    <message>
        <source>“{model}” does not choose by itself how much to reason, so it does not.</source>
        <translation>“{model}”不会自行选择推理多少，因此不推理。</translation>
    </message>
    <message>
        <source>“{model}” does not read pictures.</source>
        <translation>“{model}”不读取图片。</translation>
    </message>
    <message>
        <source>“{model}” does not reason here while it has tools; by the API “OpenAI Responses” it can.</source>
        <translation>“{model}”在有工具时在这里不推理；使用协议“OpenAI Responses”时可以。</translation>
    </message>
    <message>
        <source>“{model}” does not take {names} while it reasons, so that was left out.</source>
        <translation>“{model}”推理时不接受 {names}，因此已省略。</translation>
    </message>
    <message>
        <source>“{model}” has no reasoning level “{wanted}”, so it reasons at “{effort}”.</source>
        <translation>“{model}”没有推理级别“{wanted}”，因此以“{effort}”推理。</translation>
    </message>
    <message>
        <source>“{model}” is asked in words to answer in JSON: nothing makes sure that it does.</source>
        <translation>已用文字请“{model}”以 JSON 回答：无法保证它会这样做。</translation>
    </message>
    <message>
        <source>“{model}” is still answering, and only one model runs at a time.</source>
        <translation>“{model}”仍在回答，同一时间只能运行一个模型。</translation>
    </message>
    <message>
        <source>“{model}” is told the schema in words: only that it is JSON is made sure.</source>
        <translation>已用文字将架构告知“{model}”：只能保证它是 JSON。</translation>
    </message>
    <message>
        <source>“{model}” takes no stop sequences, so they were left out.</source>
        <translation>“{model}”不接受停止序列，因此已省略。</translation>
    </message>
    <message>
        <source>“{model}” was not loaded in time.</source>
        <translation>“{model}”未能及时加载。</translation>
    </message>
    <message>
        <source>“{model}” was stopped.</source>
        <translation>“{model}”已停止。</translation>
    </message>
    <message>
        <source>“{model}” was unloaded, because nobody used it.</source>
        <translation>“{model}”因无人使用已卸载。</translation>
    </message>
    <message>
        <source>“{name}” cannot be read: {why}.</source>
        <translation>无法读取“{name}”：{why}。</translation>
    </message>
    <message>
        <source>“{name}” cannot be the name of a tool.</source>
        <translation>“{name}”不能作为工具名称。</translation>
    </message>
    <message>
        <source>“{name}” cannot be the name of an argument.</source>
        <translation>“{name}”不能作为参数名称。</translation>
    </message>
    <message>
        <source>“{name}” could not be started: {why}.</source>
        <translation>“{name}”无法启动：{why}。</translation>
    </message>
    <message>
        <source>“{name}” has no text: its pages are pictures.</source>
        <translation>“{name}”没有文本：其页面是图片。</translation>
    </message>
    <message>
        <source>“{name}” is a PDF that cannot be read.</source>
        <translation>“{name}”是无法读取的 PDF。</translation>
    </message>
    <message>
        <source>“{name}” is a folder, not a program.</source>
        <translation>“{name}”是文件夹，不是程序。</translation>
    </message>
    <message>
        <source>“{name}” is a part of a model, and cannot answer by itself.</source>
        <translation>“{name}”只是模型的一部分，无法独立回答。</translation>
    </message>
    <message>
        <source>“{name}” is larger than {limit}.</source>
        <translation>“{name}”大于 {limit}。</translation>
    </message>
    <message>
        <source>“{name}” is not a model in the GGUF format: {why}.</source>
        <translation>“{name}”不是 GGUF 格式的模型：{why}。</translation>
    </message>
    <message>
        <source>“{name}” is not a program that this computer can run.</source>
        <translation>“{name}”不是此计算机可以运行的程序。</translation>
    </message>
    <message>
        <source>“{name}” is protected by a password.</source>
        <translation>“{name}”受密码保护。</translation>
    </message>
    <message>
        <source>“{name}” let the work go on.</source>
        <translation>“{name}”让工作继续。</translation>
    </message>
    <message>
        <source>“{name}” was not called: agents may call each other {depth} deep at most.</source>
        <translation>未调用“{name}”：智能体之间最多可相互调用 {depth} 层。</translation>
    </message>
    <message>
        <source>“{name}” was not called: its mode “{mode}” does not exist.</source>
        <translation>未调用“{name}”：其模式“{mode}”不存在。</translation>
    </message>
    <message>
        <source>“{name}” was not read: it holds no conversations.</source>
        <translation>未读取“{name}”：其中没有对话。</translation>
    </message>
    <message>
        <source>“{path}” also has other names on this disk. Under those, the current content stays.</source>
        <translation>“{path}”在此磁盘上还有其他名称；在那些名称下，现有内容保持不变。</translation>
    </message>
    <message>
        <source>“{path}” begins with ~, which stands for a home folder; write the path inside the workspace.</source>
        <translation>“{path}”以表示主文件夹的 ~ 开头；请写工作文件夹内的路径。</translation>
    </message>
    <message>
        <source>“{path}” cannot be read now, so it could not be saved first; it was left as it is.</source>
        <translation>“{path}”现在无法读取，因此无法先保存；它保持原样。</translation>
    </message>
    <message>
        <source>“{path}” cannot be read: {why}.</source>
        <translation>无法读取“{path}”：{why}。</translation>
    </message>
    <message>
        <source>“{path}” cannot be used: {reason}.</source>
        <translation>无法使用“{path}”：{reason}。</translation>
    </message>
    <message>
        <source>“{path}” cannot be used: {why}.</source>
        <translation>无法使用“{path}”：{why}。</translation>
    </message>
    <message>
        <source>“{path}” cannot be written to.</source>
        <translation>无法写入“{path}”。</translation>
    </message>
    <message>
        <source>“{path}” changed while it was being followed; nothing was touched.</source>
        <translation>“{path}”在跟随期间发生了变化；没有改动任何内容。</translation>
    </message>
    <message>
        <source>“{path}” contains a colon, which names a drive or a hidden stream on Windows.</source>
        <translation>“{path}”包含冒号，在 Windows 上表示驱动器或隐藏的数据流。</translation>
    </message>
    <message>
        <source>“{path}” contains a control character.</source>
        <translation>“{path}”包含控制字符。</translation>
    </message>
    <message>
        <source>“{path}” contains half a character.</source>
        <translation>“{path}”包含半个字符。</translation>
    </message>
    <message>
        <source>“{path}” could not be read before the call, so it was not saved.</source>
        <translation>“{path}”在调用前无法读取，因此未保存。</translation>
    </message>
    <message>
        <source>“{path}” ends in a dot or a space, which Windows would drop.</source>
        <translation>“{path}”以句点或空格结尾，Windows 会将其去掉。</translation>
    </message>
    <message>
        <source>“{path}” exists already.</source>
        <translation>“{path}”已存在。</translation>
    </message>
    <message>
        <source>“{path}” holds no conversations that this version can read.</source>
        <translation>“{path}”中没有此版本可以读取的对话。</translation>
    </message>
    <message>
        <source>“{path}” is a PDF, not a picture.</source>
        <translation>“{path}”是 PDF，不是图片。</translation>
    </message>
    <message>
        <source>“{path}” is a different file now. Check again what would be undone.</source>
        <translation>“{path}”现在是另一个文件。请再检查一遍将要撤销什么。</translation>
    </message>
    <message>
        <source>“{path}” is a file of the data folder, which no export replaces.</source>
        <translation>“{path}”是数据文件夹中的文件，导出不会替换它。</translation>
    </message>
    <message>
        <source>“{path}” is a file, and this export is a folder of files.</source>
        <translation>“{path}”是文件，而此导出是一个包含多个文件的文件夹。</translation>
    </message>
    <message>
        <source>“{path}” is a file, not a folder.</source>
        <translation>“{path}”是文件，不是文件夹。</translation>
    </message>
    <message>
        <source>“{path}” is a file, where a folder is needed.</source>
        <translation>“{path}”是一个文件，此处需要文件夹。</translation>
    </message>
    <message>
        <source>“{path}” is a folder now, with something in it that belongs to somebody else.</source>
        <translation>“{path}”现在是文件夹，其中有属于他人的内容。</translation>
    </message>
    <message>
        <source>“{path}” is a folder with something in it.</source>
        <translation>“{path}”是文件夹，其中有内容。</translation>
    </message>
    <message>
        <source>“{path}” is a folder, and this export is one file.</source>
        <translation>“{path}”是文件夹，而此导出是一个文件。</translation>
    </message>
    <message>
        <source>“{path}” is a folder, not a file.</source>
        <translation>“{path}”是文件夹，不是文件。</translation>
    </message>
    <message>
        <source>“{path}” is a folder; only files are moved.</source>
        <translation>“{path}”是文件夹；只能移动文件。</translation>
    </message>
    <message>
        <source>“{path}” is a link that cannot be followed; nothing was touched.</source>
        <translation>“{path}”是无法跟随的链接；没有改动任何内容。</translation>
    </message>
    <message>
        <source>“{path}” is an absolute path with “..” in it; write it relative to the workspace folder.</source>
        <translation>“{path}”是含“..”的绝对路径；请写相对于工作文件夹的路径。</translation>
    </message>
    <message>
        <source>“{path}” is an empty folder.</source>
        <translation>“{path}”是一个空文件夹。</translation>
    </message>
    <message>
        <source>“{path}” is being written to by another program.</source>
        <translation>另一个程序正在写入“{path}”。</translation>
    </message>
    <message>
        <source>“{path}” is damaged and cannot be read.</source>
        <translation>“{path}”已损坏，无法读取。</translation>
    </message>
    <message>
        <source>“{path}” is gone: it was removed or moved.</source>
        <translation>“{path}”已不见：它被移除或移走了。</translation>
    </message>
    <message>
        <source>“{path}” is larger than 256 MB now, so it could not be saved first; it was left as it is.</source>
        <translation>“{path}”现在大于 256 MB，因此无法先保存；它保持原样。</translation>
    </message>
    <message>
        <source>“{path}” is larger than {limit} MB.</source>
        <translation>“{path}”大于 {limit} MB。</translation>
    </message>
    <message>
        <source>“{path}” is neither a file nor a folder.</source>
        <translation>“{path}”既不是文件也不是文件夹。</translation>
    </message>
    <message>
        <source>“{path}” is no longer an ordinary file, so it could not be saved first; it was left as it is.</source>
        <translation>“{path}”现在不是普通文件，因此无法先保存；它保持原样。</translation>
    </message>
    <message>
        <source>“{path}” is not a folder of the workspace.</source>
        <translation>“{path}”不是工作文件夹中的文件夹。</translation>
    </message>
    <message>
        <source>“{path}” is not a picture that can be shown.</source>
        <translation>“{path}”不是可以显示的图片。</translation>
    </message>
    <message>
        <source>“{path}” is not an ordinary file, so no export can replace it.</source>
        <translation>“{path}”不是普通文件，因此导出无法替换它。</translation>
    </message>
    <message>
        <source>“{path}” is not an ordinary file.</source>
        <translation>“{path}”不是普通文件。</translation>
    </message>
    <message>
        <source>“{path}” is not text and cannot be edited.</source>
        <translation>“{path}”不是文本，无法编辑。</translation>
    </message>
    <message>
        <source>“{path}” is not text, or too long to be shown line by line.</source>
        <translation>“{path}”不是文本，或过长而无法逐行显示。</translation>
    </message>
    <message>
        <source>“{path}” is on a read-only disk.</source>
        <translation>“{path}”位于只读磁盘上。</translation>
    </message>
    <message>
        <source>“{path}” is on another disk and cannot be moved there; write a copy and delete the old file.</source>
        <translation>“{path}”位于另一块磁盘上，无法移到那里；请写入副本并删除旧文件。</translation>
    </message>
    <message>
        <source>“{path}” is outside the workspace folder.</source>
        <translation>“{path}”在工作文件夹之外。</translation>
    </message>
    <message>
        <source>“{path}” is packed in a way that cannot be read here.</source>
        <translation>“{path}”的压缩方式在这里无法读取。</translation>
    </message>
    <message>
        <source>“{path}” is protected by a password.</source>
        <translation>“{path}”受密码保护。</translation>
    </message>
    <message>
        <source>“{path}” is the name of a device on Windows.</source>
        <translation>“{path}”是 Windows 上的设备名称。</translation>
    </message>
    <message>
        <source>“{path}” is there already.</source>
        <translation>“{path}”已经存在。</translation>
    </message>
    <message>
        <source>“{path}” is too long for a path.</source>
        <translation>“{path}”作为路径过长。</translation>
    </message>
    <message>
        <source>“{path}” is write-protected.</source>
        <translation>“{path}”有写保护。</translation>
    </message>
    <message>
        <source>“{path}” is {what} of {size} bytes and cannot be read as text.</source>
        <translation>“{path}”是 {what}，共 {size} 字节，无法作为文本读取。</translation>
    </message>
    <message>
        <source>“{path}” leads out of the workspace folder.</source>
        <translation>“{path}”通向工作文件夹之外。</translation>
    </message>
    <message>
        <source>“{path}” leads to “{real}” now.</source>
        <translation>“{path}”现在指向“{real}”。</translation>
    </message>
    <message>
        <source>“{path}” stays as it is.</source>
        <translation>“{path}”保持原样。</translation>
    </message>
    <message>
        <source>“{path}” was changed by another program meanwhile.</source>
        <translation>“{path}”在此期间被另一个程序更改。</translation>
    </message>
    <message>
        <source>“{path}” was changed since; it was left as it is.</source>
        <translation>“{path}”此后已被更改；它保持原样。</translation>
    </message>
    <message>
        <source>“{path}” was larger than 256 MB and not saved.</source>
        <translation>“{path}”大于 256 MB，未保存。</translation>
    </message>
    <message>
        <source>“{path}” was not an ordinary file, so it was not saved.</source>
        <translation>“{path}”不是普通文件，因此未保存。</translation>
    </message>
    <message>
        <source>“{path}” was replaced by another file while it was open, and that one cannot be read.</source>
        <translation>“{path}”在打开期间被另一个文件替换，而该文件无法读取。</translation>
    </message>
    <message>
        <source>“{path}” was replaced by another file while it was open.</source>
        <translation>“{path}”在打开期间被另一个文件替换。</translation>
    </message>
    <message>
        <source>“{path}” was replaced by another file while it was open. What was in it is kept as “{copy}”.</source>
        <translation>“{path}”在打开期间被另一个文件替换。原来的内容已保留为“{copy}”。</translation>
    </message>
    <message>
        <source>“{seq}” is not a place in a run.</source>
        <translation>“{seq}”不是运行中的位置。</translation>
    </message>
    <message>
        <source>“{server}”</source>
        <translation>“{server}”</translation>
    </message>
    <message>
        <source>“{tool}”</source>
        <translation>“{tool}”</translation>
    </message>
    <message>
        <source>“{tool}” already began to undo this. Whether that worked is not known, so it is not tried again.</source>
        <translation>“{tool}”先前已开始撤销此操作。是否成功未知，因此不会再次尝试。</translation>
    </message>
    <message>
        <source>“{tool}” could not undo it: {why}</source>
        <translation>“{tool}”无法撤销：{why}</translation>
    </message>
    <message>
        <source>“{url}” is not a web address.</source>
        <translation>“{url}”不是网址。</translation>
    </message>
    <message>
        <source>“{where}” did not answer within {n} seconds</source>
        <translation>“{where}”在 {n} 秒内没有应答</translation>
    </message>
    <message>
        <source>“{where}” does not speak TLS as expected</source>
        <translation>“{where}”的 TLS 通信不符合预期</translation>
    </message>
    <message>
        <source>“{where}” is not an address that can be asked.</source>
        <translation>“{where}”不是可以请求的地址。</translation>
    </message>
    <message>
        <source>A link can start a conversation, or open one or a message in it.</source>
        <translation>链接可以开始一个对话，或者打开某个对话或其中的一条消息。</translation>
    </message>
    <message>
        <source>An attachment is not loaded yet.</source>
        <translation>某个附件尚未加载。</translation>
    </message>
    <message>
        <source>An automatic backup is being written. This begins by itself when it is done.</source>
        <translation>正在写入自动备份。完成后会自动开始。</translation>
    </message>
    <message>
        <source>Another program already uses {keys}.</source>
        <translation>{keys} 已被其他程序占用。</translation>
    </message>
    <message>
        <source>Archived conversations: {count}.</source>
        <translation>已归档的对话：{count}。</translation>
    </message>
    <message>
        <source>Archived “{title}”.</source>
        <translation>已归档“{title}”。</translation>
    </message>
    <message>
        <source>Ask the agent to read it in parts by a tool of the server.</source>
        <translation>请让智能体使用服务器的工具分段读取。</translation>
    </message>
    <message>
        <source>Ask the agent to work with it by a tool of the server.</source>
        <translation>请让智能体使用服务器的工具处理它。</translation>
    </message>
    <message>
        <source>Asking the server for its models…</source>
        <translation>正在向服务器询问其模型…</translation>
    </message>
    <message>
        <source>Asking {title} for its models…</source>
        <translation>正在向 {title} 询问其模型…</translation>
    </message>
    <message>
        <source>Asking “{host}”…</source>
        <translation>正在询问“{host}”…</translation>
    </message>
    <message>
        <source>At 100 % no model is asked any more.</source>
        <translation>达到 100% 时不再询问任何模型。</translation>
    </message>
    <message>
        <source>Attach only the part that matters.</source>
        <translation>请只附加其中重要的部分。</translation>
    </message>
    <message>
        <source>Backups and copies that still have what was deleted for good: {count}.</source>
        <translation>仍含有已永久删除内容的备份和副本：{count}。</translation>
    </message>
    <message>
        <source>Backups and copies that still have what was deleted for good: {count}. Damaged files that may have it too: {damaged}.</source>
        <translation>仍含有已永久删除内容的备份和副本：{count}。可能也含有这些内容的损坏文件：{damaged}。</translation>
    </message>
    <message>
        <source>Backups and copies that were deleted: {count}.</source>
        <translation>已删除的备份和副本：{count}。</translation>
    </message>
    <message>
        <source>Backups were written into folders that are not there now, and may have it too: {folders}.</source>
        <translation>备份还曾写入现在不存在的文件夹，其中可能也有这些内容：{folders}。</translation>
    </message>
    <message>
        <source>Bind the command “desktop-agent --quick-ask” to a key in the settings of your desktop.</source>
        <translation>请在桌面设置中将命令“desktop-agent --quick-ask”绑定到一个按键。</translation>
    </message>
    <message>
        <source>Brought back conversations: {count}.</source>
        <translation>已移出归档的对话：{count}。</translation>
    </message>
    <message>
        <source>Brought back “{title}”.</source>
        <translation>已将“{title}”移出归档。</translation>
    </message>
    <message>
        <source>Cancelled. Everything is as it was.</source>
        <translation>已取消。一切保持原样。</translation>
    </message>
    <message>
        <source>Change it in the settings of your desktop.</source>
        <translation>请在桌面环境的设置中更改。</translation>
    </message>
    <message>
        <source>Change the files back by hand.</source>
        <translation>请手动将文件改回。</translation>
    </message>
    <message>
        <source>Changed the folder “{name}”.</source>
        <translation>已更改文件夹“{name}”。</translation>
    </message>
    <message>
        <source>Changed the tags of “{title}”.</source>
        <translation>已更改“{title}”的标签。</translation>
    </message>
    <message>
        <source>Check the address. If the server does not list its models, type the name of one.</source>
        <translation>请检查地址。如果服务器不列出模型，请输入模型名称。</translation>
    </message>
    <message>
        <source>Check the disk and its free space.</source>
        <translation>请检查磁盘及其可用空间。</translation>
    </message>
    <message>
        <source>Choose a picture or a text.</source>
        <translation>请选择图片或文本。</translation>
    </message>
    <message>
        <source>Choose another folder, or change its rights.</source>
        <translation>请选择其他文件夹，或更改其权限。</translation>
    </message>
    <message>
        <source>Choose another folder, or change the rights of this one.</source>
        <translation>请选择其他文件夹，或更改此文件夹的权限。</translation>
    </message>
    <message>
        <source>Choose another name or another folder.</source>
        <translation>请选择其他名称或其他文件夹。</translation>
    </message>
    <message>
        <source>Choose another resource.</source>
        <translation>请选择其他资源。</translation>
    </message>
    <message>
        <source>Choose other keys, or take these from that program.</source>
        <translation>请选择其他按键，或在那个程序中取消这些按键。</translation>
    </message>
    <message>
        <source>Choose other keys.</source>
        <translation>请选择其他按键。</translation>
    </message>
    <message>
        <source>Choose the keys again, and agree when your desktop asks.</source>
        <translation>请重新选择按键，并在桌面询问时同意。</translation>
    </message>
    <message>
        <source>Choose the keys again.</source>
        <translation>请重新选择按键。</translation>
    </message>
    <message>
        <source>Compacted: {before} before, {after} now.</source>
        <translation>已压缩：之前 {before}，现在 {after}。</translation>
    </message>
    <message>
        <source>Compacting…</source>
        <translation>正在压缩…</translation>
    </message>
    <message>
        <source>Connected.</source>
        <translation>已连接。</translation>
    </message>
    <message>
        <source>Connected. Its address is {address}.</source>
        <translation>已连接。其地址为 {address}。</translation>
    </message>
    <message>
        <source>Continue it here, then change it.</source>
        <translation>请在这里继续它，然后再更改。</translation>
    </message>
    <message>
        <source>Conversations of {programs} were found on this computer.</source>
        <translation>在此计算机上找到了 {programs} 的对话。</translation>
    </message>
    <message>
        <source>Conversations put into the trash: {count}.</source>
        <translation>已移到回收站的对话：{count}。</translation>
    </message>
    <message>
        <source>Copy what you have written, close the window, and install it again.</source>
        <translation>请复制您写的内容，关闭窗口，并重新安装程序。</translation>
    </message>
    <message>
        <source>Damaged files that may still have what was deleted for good: {damaged}.</source>
        <translation>可能仍含有已永久删除内容的损坏文件：{damaged}。</translation>
    </message>
    <message>
        <source>Deleted meanwhile, so not exported ({count}): {titles}.</source>
        <translation>其间已被删除，因此未导出（{count}）：{titles}。</translation>
    </message>
    <message>
        <source>Deleting…</source>
        <translation>正在删除…</translation>
    </message>
    <message>
        <source>Desktop Agent cannot start: a part of it is missing or damaged.</source>
        <translation>Desktop Agent 无法启动：它的某个部分缺失或损坏。</translation>
    </message>
    <message>
        <source>Desktop Agent does not know this link, and nothing was opened.</source>
        <translation>Desktop Agent 无法识别此链接，没有打开任何内容。</translation>
    </message>
    <message>
        <source>Desktop Agent does not open “{address}”.</source>
        <translation>Desktop Agent 不会打开“{address}”。</translation>
    </message>
    <message>
        <source>Desktop Agent ended unexpectedly the last time.</source>
        <translation>Desktop Agent 上次意外退出。</translation>
    </message>
    <message>
        <source>Desktop Agent is already open ({who}); its window comes to the front.</source>
        <translation>Desktop Agent 已打开（{who}）；其窗口将显示到前面。</translation>
    </message>
    <message>
        <source>Desktop Agent is already open on this data folder ({who}), and does not answer. End that process, or name another folder with --data-dir.</source>
        <translation>Desktop Agent 已使用此数据文件夹打开（{who}），但没有响应。请结束该进程，或用 --data-dir 指定其他文件夹。</translation>
    </message>
    <message>
        <source>Desktop Agent {version} of {date} is available.</source>
        <translation>Desktop Agent {version}（{date}）可用。</translation>
    </message>
    <message>
        <source>Exported to “{path}”.</source>
        <translation>已导出到“{path}”。</translation>
    </message>
    <message>
        <source>Files that the other version changed stay as they are.</source>
        <translation>另一个版本更改的文件保持不变。</translation>
    </message>
    <message>
        <source>Files that the other version changed stay as they are. What these tools did is not undone either: {tools}.</source>
        <translation>另一个版本更改的文件保持不变。这些工具所做的操作也不会被撤销：{tools}。</translation>
    </message>
    <message>
        <source>Folders with backups that are not there now, and may still have what was deleted for good: {folders}.</source>
        <translation>以下备份文件夹现在不存在，其中可能仍有已永久删除的内容：{folders}。</translation>
    </message>
    <message>
        <source>Free some space, or save it on another disk.</source>
        <translation>请释放一些空间，或保存到其他磁盘。</translation>
    </message>
    <message>
        <source>Get a model with that program first, then try again.</source>
        <translation>请先用该程序下载一个模型，然后重试。</translation>
    </message>
    <message>
        <source>Here already: {present}.</source>
        <translation>原已存在：{present}。</translation>
    </message>
    <message>
        <source>Imported conversations: {added}.</source>
        <translation>已导入的对话：{added}。</translation>
    </message>
    <message>
        <source>It answers and has one model.</source>
        <translation>它有应答，共有 1 个模型。</translation>
    </message>
    <message>
        <source>It answers and has {count} models.</source>
        <translation>它有应答，共有 {count} 个模型。</translation>
    </message>
    <message>
        <source>It answers at {address}. That is its address from now on.</source>
        <translation>它在 {address} 应答。从现在起这就是它的地址。</translation>
    </message>
    <message>
        <source>It may say something other than it seems to.</source>
        <translation>它的实际内容可能与看上去的不同。</translation>
    </message>
    <message>
        <source>It would not run: {why}</source>
        <translation>不会运行：{why}</translation>
    </message>
    <message>
        <source>It would run without asking: a rule allows it.</source>
        <translation>会不询问就运行：有规则允许。</translation>
    </message>
    <message>
        <source>It would run without asking: it only reads.</source>
        <translation>会不询问就运行：它只读取。</translation>
    </message>
    <message>
        <source>It would run without asking: the mode allows it.</source>
        <translation>会不询问就运行：模式允许。</translation>
    </message>
    <message>
        <source>Its name may hold bytes that are not text. Rename it, or choose another folder.</source>
        <translation>其名称可能包含不是文本的字节。请将其重命名，或选择其他文件夹。</translation>
    </message>
    <message>
        <source>Left out: {skipped}.</source>
        <translation>已省略：{skipped}。</translation>
    </message>
    <message>
        <source>Less was restored than there was. Conversations: {conversations} of {expected}.</source>
        <translation>还原的内容少于原有内容。对话：{expected} 个中的 {conversations} 个。</translation>
    </message>
    <message>
        <source>Look in your account there which models the key may use.</source>
        <translation>请在您那里的账户中查看该密钥可以使用哪些模型。</translation>
    </message>
    <message>
        <source>Moved conversations: {count}.</source>
        <translation>已移动的对话：{count}。</translation>
    </message>
    <message>
        <source>Moved the folder “{name}”.</source>
        <translation>已移动文件夹“{name}”。</translation>
    </message>
    <message>
        <source>Moved “{title}”.</source>
        <translation>已移动“{title}”。</translation>
    </message>
    <message>
        <source>New versions come with your system&apos;s software updates.</source>
        <translation>新版本随系统的软件更新一起提供。</translation>
    </message>
    <message>
        <source>No conversation was shown yet.</source>
        <translation>尚未显示任何对话。</translation>
    </message>
    <message>
        <source>No model is asked any more. Raise the budget in Settings, or ask anyway.</source>
        <translation>不再询问任何模型。请在“设置”中提高预算，或仍然询问。</translation>
    </message>
    <message>
        <source>No picture of the screen could be taken.</source>
        <translation>无法截取屏幕图片。</translation>
    </message>
    <message>
        <source>No screenshot was taken.</source>
        <translation>没有截取屏幕。</translation>
    </message>
    <message>
        <source>Not all of it was redone.</source>
        <translation>未能全部恢复。</translation>
    </message>
    <message>
        <source>Not all of it was undone.</source>
        <translation>未能全部撤销。</translation>
    </message>
    <message>
        <source>Not available on this system yet. Use the tray&apos;s menu or the command palette to open the window.</source>
        <translation>此系统尚不支持。可从托盘菜单或命令面板打开该窗口。</translation>
    </message>
    <message>
        <source>Not possible in this package: it may not change how your desktop starts. Your desktop can.</source>
        <translation>此软件包无法做到：它不得更改桌面的启动项。您的桌面环境可以更改。</translation>
    </message>
    <message>
        <source>Nothing was left to redo: the files are already as they were before it was undone.</source>
        <translation>没有可恢复的内容：文件已经是撤销之前的样子。</translation>
    </message>
    <message>
        <source>Nothing was left to undo: the files are already as they were before.</source>
        <translation>没有可撤销的内容：文件已经是之前的样子。</translation>
    </message>
    <message>
        <source>Nothing was redone.</source>
        <translation>没有恢复任何内容。</translation>
    </message>
    <message>
        <source>Nothing was undone.</source>
        <translation>没有撤销任何内容。</translation>
    </message>
    <message>
        <source>Only the first {count} of these files and links are opened.</source>
        <translation>只打开这些文件和链接中的前 {count} 个。</translation>
    </message>
    <message>
        <source>Open its list again.</source>
        <translation>请重新打开其列表。</translation>
    </message>
    <message>
        <source>Pictures that could not be read: {count}. Their places are kept.</source>
        <translation>无法读取的图片：{count}。其位置已保留。</translation>
    </message>
    <message>
        <source>Pinned conversations: {count}.</source>
        <translation>已置顶的对话：{count}。</translation>
    </message>
    <message>
        <source>Pinned “{title}”.</source>
        <translation>已置顶“{title}”。</translation>
    </message>
    <message>
        <source>Press the button again for another try.</source>
        <translation>再次按下按钮即可重试。</translation>
    </message>
    <message>
        <source>Redone: {files}.</source>
        <translation>已恢复：{files}。</translation>
    </message>
    <message>
        <source>Restored, as much as there was: conversations: {conversations}, messages: {messages}.</source>
        <translation>已还原现有的全部内容。对话：{conversations}，消息：{messages}。</translation>
    </message>
    <message>
        <source>Restoring…</source>
        <translation>正在还原…</translation>
    </message>
    <message>
        <source>Save it as a text in UTF-8, or choose a picture.</source>
        <translation>请将其另存为 UTF-8 文本，或选择一张图片。</translation>
    </message>
    <message>
        <source>Scheduled prompts have stopped ({kind}).</source>
        <translation>定时提示词已停止运行（{kind}）。</translation>
    </message>
    <message>
        <source>Something else is being done with backups. This begins by itself when it is done.</source>
        <translation>正在对备份进行其他操作。完成后会自动开始。</translation>
    </message>
    <message>
        <source>Start Desktop Agent again in a desktop session.</source>
        <translation>请在桌面会话中重新启动 Desktop Agent。</translation>
    </message>
    <message>
        <source>Stopped. What was complete by then is kept.</source>
        <translation>已停止。此前已完成的内容会保留。</translation>
    </message>
    <message>
        <source>Tagged conversations: {count}.</source>
        <translation>已加标签的对话：{count}。</translation>
    </message>
    <message>
        <source>Take one with the keys of your desktop, and attach the clipboard.</source>
        <translation>请用桌面的快捷键截取，然后附加剪贴板内容。</translation>
    </message>
    <message>
        <source>The X server does not offer keys for the whole desktop.</source>
        <translation>X 服务器不提供全局按键。</translation>
    </message>
    <message>
        <source>The automatic backup was not written: {why}</source>
        <translation>未写入自动备份：{why}</translation>
    </message>
    <message>
        <source>The backup is in “{folder}”.</source>
        <translation>备份位于“{folder}”。</translation>
    </message>
    <message>
        <source>The check failed: {why}</source>
        <translation>检查失败：{why}</translation>
    </message>
    <message>
        <source>The desktop&apos;s portal has ended, so the keys for a quick question no longer work.</source>
        <translation>桌面门户已结束，快速提问的按键也随之失效。</translation>
    </message>
    <message>
        <source>The folder of “{path}” is gone.</source>
        <translation>“{path}”的文件夹已不存在。</translation>
    </message>
    <message>
        <source>The key is removed.</source>
        <translation>密钥已移除。</translation>
    </message>
    <message>
        <source>The keyboard has no {keys}.</source>
        <translation>键盘上没有 {keys}。</translation>
    </message>
    <message>
        <source>The link has characters in it that cannot be seen, and nothing was opened.</source>
        <translation>链接中含有看不见的字符，没有打开任何内容。</translation>
    </message>
    <message>
        <source>The link is too long, and nothing was opened.</source>
        <translation>链接过长，没有打开任何内容。</translation>
    </message>
    <message>
        <source>The list of licences is damaged. Install the program again.</source>
        <translation>许可证列表已损坏。请重新安装本程序。</translation>
    </message>
    <message>
        <source>The message is in another version of this conversation. It can be shown when the answer has ended.</source>
        <translation>该消息在此对话的另一个版本中。回答结束后即可显示。</translation>
    </message>
    <message>
        <source>The message is in another version of this conversation. It can be shown when the other program has ended.</source>
        <translation>该消息在此对话的另一个版本中。另一个程序结束后即可显示。</translation>
    </message>
    <message>
        <source>The message is not in this conversation any more. Search again later.</source>
        <translation>该消息已不在此对话中。请稍后重新搜索。</translation>
    </message>
    <message>
        <source>The message that you are writing could not be saved either.</source>
        <translation>您正在编写的消息也未能保存。</translation>
    </message>
    <message>
        <source>The message that you are writing could not be saved.</source>
        <translation>您正在编写的消息未能保存。</translation>
    </message>
    <message>
        <source>The path of the program or of the data folder has characters that cannot be used there.</source>
        <translation>程序或数据文件夹的路径中有那里无法使用的字符。</translation>
    </message>
    <message>
        <source>The screenshot of your desktop cannot be read.</source>
        <translation>无法读取桌面的屏幕截图。</translation>
    </message>
    <message>
        <source>The servers were changed meanwhile. Look at the text again.</source>
        <translation>服务器在此期间已更改。请再看一遍文本。</translation>
    </message>
    <message>
        <source>There are no screenshots on this system yet.</source>
        <translation>此系统尚不支持屏幕截图。</translation>
    </message>
    <message>
        <source>There is no answer yet.</source>
        <translation>还没有回答。</translation>
    </message>
    <message>
        <source>There is no file “{name}” that can be read.</source>
        <translation>没有可读取的文件“{name}”。</translation>
    </message>
    <message>
        <source>There is no message of yours yet, so nothing to undo.</source>
        <translation>还没有您的消息，因此没有可撤销的内容。</translation>
    </message>
    <message>
        <source>There is no message yet.</source>
        <translation>还没有消息。</translation>
    </message>
    <message>
        <source>There is no other version.</source>
        <translation>没有其他版本。</translation>
    </message>
    <message>
        <source>There is no room left for “{path}”.</source>
        <translation>没有剩余空间可存放“{path}”。</translation>
    </message>
    <message>
        <source>There is no text and no picture on the clipboard.</source>
        <translation>剪贴板中没有文字，也没有图片。</translation>
    </message>
    <message>
        <source>There is nothing in this conversation yet that could be exported.</source>
        <translation>此对话中还没有可导出的内容。</translation>
    </message>
    <message>
        <source>There is nothing in this conversation yet. Send a message first, then rename it.</source>
        <translation>此对话中还没有内容。请先发送一条消息，然后重命名。</translation>
    </message>
    <message>
        <source>They can be shown below your own and continued with any model. They are only read.</source>
        <translation>它们可以显示在您自己的对话下方，并使用任意模型继续。它们只会被读取。</translation>
    </message>
    <message>
        <source>This build has no address to ask for new versions.</source>
        <translation>此构建没有可用来查询新版本的地址。</translation>
    </message>
    <message>
        <source>This conversation is not stored, so nothing in it can be undone.</source>
        <translation>此对话不会存储，因此无法撤销其中任何操作。</translation>
    </message>
    <message>
        <source>This conversation of another program is not known any more.</source>
        <translation>其他程序的此对话已不存在。</translation>
    </message>
    <message>
        <source>This conversation of another program is only read here.</source>
        <translation>其他程序的此对话在这里只读。</translation>
    </message>
    <message>
        <source>This conversation of another program is only read here. Continue it here, then export it.</source>
        <translation>其他程序的此对话在这里只读。请先在这里继续它，然后导出。</translation>
    </message>
    <message>
        <source>This conversation of another program is only read here. Continue it here, then rename it.</source>
        <translation>其他程序的此对话在这里只读。请先在这里继续它，然后重命名。</translation>
    </message>
    <message>
        <source>This is the newest version, as of {moment}.</source>
        <translation>这是最新版本（截至 {moment}）。</translation>
    </message>
    <message>
        <source>This model has no reasoning level “{choice}”. Reasoning is back to Default.</source>
        <translation>此模型没有推理级别“{choice}”。推理已恢复为“默认”。</translation>
    </message>
    <message>
        <source>This time is past. Choose a later one.</source>
        <translation>此时间已过。请选择更晚的时间。</translation>
    </message>
    <message>
        <source>Try again in a moment.</source>
        <translation>请稍后重试。</translation>
    </message>
    <message>
        <source>Undone. {words}</source>
        <translation>已撤销。{words}</translation>
    </message>
    <message>
        <source>Undone: {files}.</source>
        <translation>已撤销：{files}。</translation>
    </message>
    <message>
        <source>Undone: {files}. {words}</source>
        <translation>已撤销：{files}。{words}</translation>
    </message>
    <message>
        <source>Unpinned conversations: {count}.</source>
        <translation>已取消置顶的对话：{count}。</translation>
    </message>
    <message>
        <source>Unpinned “{title}”.</source>
        <translation>已取消置顶“{title}”。</translation>
    </message>
    <message>
        <source>Wait until it is done, then compact.</source>
        <translation>请等它完成后再压缩。</translation>
    </message>
    <message>
        <source>What these tools did for the other version is not undone: {tools}.</source>
        <translation>这些工具为另一个版本所做的操作不会被撤销：{tools}。</translation>
    </message>
    <message>
        <source>Working on your conversations: {percent} % done.</source>
        <translation>正在处理您的对话：已完成 {percent}%。</translation>
    </message>
    <message>
        <source>Write the full path, or leave the field empty.</source>
        <translation>请写完整路径，或将字段留空。</translation>
    </message>
    <message>
        <source>Writing a backup…</source>
        <translation>正在写入备份…</translation>
    </message>
    <message>
        <source>You are not signed in.</source>
        <translation>您尚未登录。</translation>
    </message>
    <message>
        <source>You would be asked.</source>
        <translation>会询问您。</translation>
    </message>
    <message>
        <source>You would be asked: {why}</source>
        <translation>会询问您：{why}</translation>
    </message>
    <message>
        <source>Your conversations are kept. You can read a report of the crash; it is sent nowhere.</source>
        <translation>您的对话已保留。您可以阅读崩溃报告；它不会发送到任何地方。</translation>
    </message>
    <message>
        <source>Your desktop gave no key for the quick question.</source>
        <translation>您的桌面没有为快速提问提供按键。</translation>
    </message>
    <message>
        <source>Your desktop has no portal for global shortcuts, so no keys can be set here.</source>
        <translation>您的桌面没有全局快捷键门户，因此此处无法设置按键。</translation>
    </message>
    <message>
        <source>Your desktop has no portal for screenshots.</source>
        <translation>您的桌面没有屏幕截图门户。</translation>
    </message>
    <message>
        <source>Your desktop refused the screenshot.</source>
        <translation>您的桌面拒绝了屏幕截图。</translation>
    </message>
    <message>
        <source>Your earlier draft is not loaded yet.</source>
        <translation>您先前的草稿尚未加载。</translation>
    </message>
    <message>
        <source>Your prompts can be edited as soon as messages can be sent here again.</source>
        <translation>一旦这里可以再次发送消息，即可编辑您的提示词。</translation>
    </message>
    <message>
        <source>another process</source>
        <translation>另一个进程</translation>
    </message>
    <message>
        <source>every tool</source>
        <translation>每个工具</translation>
    </message>
    <message>
        <source>process {pid} on “{host}” since {since}</source>
        <translation>“{host}”上的进程 {pid}（自 {since} 起）</translation>
    </message>
    <message>
        <source>process {pid} since {since}</source>
        <translation>进程 {pid}（自 {since} 起）</translation>
    </message>
    <message>
        <source>{conversations} {draft}</source>
        <translation>{conversations}{draft}</translation>
    </message>
    <message>
        <source>{keys} cannot be used everywhere.</source>
        <translation>{keys} 无法在任何地方使用。</translation>
    </message>
    <message>
        <source>{titles} and {more} more could not be saved: {why}</source>
        <translation>未能保存：{titles}以及另外 {more} 个。{why}</translation>
    </message>
    <message>
        <source>{titles} could not be saved: {why}</source>
        <translation>未能保存：{titles}。{why}</translation>
    </message>
    <message>
        <source>{title} answered, but it has no models yet.</source>
        <translation>{title} 有应答，但还没有模型。</translation>
    </message>
    <message>
        <source>{who} What it writes is shown here; you can send again when it has ended.</source>
        <translation>{who}它写入的内容会显示在这里；它结束后您可以再次发送。</translation>
    </message>
    <message>
        <source>“Start with the computer” was not changed: {why}</source>
        <translation>未能更改 Desktop Agent 是否随计算机启动：{why}</translation>
    </message>
    <message>
        <source>“{address}” could not be opened. Copy it, and open it yourself.</source>
        <translation>无法打开“{address}”。请复制该地址并自行打开。</translation>
    </message>
    <message>
        <source>“{address}” is not a file on this computer.</source>
        <translation>“{address}”不是此计算机上的文件。</translation>
    </message>
    <message>
        <source>“{folder}” is not the full path of a folder for backups.</source>
        <translation>“{folder}”不是备份文件夹的完整路径。</translation>
    </message>
    <message>
        <source>“{keys}” is not a keyboard shortcut.</source>
        <translation>“{keys}”不是快捷键。</translation>
    </message>
    <message>
        <source>“{name}”</source>
        <translation>“{name}”</translation>
    </message>
    <message>
        <source>“{name}” cannot be read: {why}. Choose another file.</source>
        <translation>无法读取“{name}”：{why}。请选择其他文件。</translation>
    </message>
    <message>
        <source>“{name}” is a device or a channel, not a file.</source>
        <translation>“{name}”是设备或管道，不是文件。</translation>
    </message>
    <message>
        <source>“{name}” is a folder.</source>
        <translation>“{name}”是文件夹。</translation>
    </message>
    <message>
        <source>“{name}” is neither a picture nor a text in UTF-8.</source>
        <translation>“{name}”既不是图片，也不是 UTF-8 文本。</translation>
    </message>
    <message>
        <source>“{name}” was saved in {folder}.</source>
        <translation>“{name}”已保存到 {folder}。</translation>
    </message>
    <message>
        <source>“{path}” cannot be saved: {reason}.</source>
        <translation>无法保存“{path}”：{reason}。</translation>
    </message>
    <message>
        <source>“{path}” cannot be written.</source>
        <translation>无法写入“{path}”。</translation>
    </message>
    <message>
        <source>“{path}” could not be written to its end.</source>
        <translation>“{path}”未能完整写入。</translation>
    </message>
    <message>
        <source>“{server}” is connected. Its models are in the list below the message editor.</source>
        <translation>“{server}”已连接。它的模型在消息框下方的列表中。</translation>
    </message>
    <message>
        <source>“{title}” has {length} characters; a message takes {most} of a resource.</source>
        <translation>“{title}”有 {length} 个字符；一条消息最多容纳资源的 {most} 个字符。</translation>
    </message>
    <message>
        <source>“{title}” is empty.</source>
        <translation>“{title}”是空的。</translation>
    </message>
    <message>
        <source>“{title}” is neither text nor a picture that a message can hold.</source>
        <translation>“{title}”既不是文本，也不是消息可容纳的图片。</translation>
    </message>
    <message>
        <source>at its next command</source>
        <translation>下次执行命令时</translation>
    </message>
    <message>
        <source>when it commits, merges, pulls or pushes</source>
        <translation>提交、合并、拉取或推送时</translation>
    </message>
    <message>
        <source>at the next commit or push</source>
        <translation>下次提交或推送时</translation>
    </message>
    <message>
        <source>pre-commit or prek</source>
        <translation>pre-commit 或 prek</translation>
    </message>
    <message>
        <source>when another repository takes its hooks from this one</source>
        <translation>其他仓库使用此仓库的钩子时</translation>
    </message>
    <message>
        <source>when it is installed next</source>
        <translation>下次安装时</translation>
    </message>
    <message>
        <source>at the next commit</source>
        <translation>下次提交时</translation>
    </message>
    <message>
        <source>at the next commit, push or check</source>
        <translation>下次提交、推送或检查时</translation>
    </message>
    <message>
        <source>when the folder is opened</source>
        <translation>打开此文件夹时</translation>
    </message>
    <message>
        <source>when debugging starts</source>
        <translation>开始调试时</translation>
    </message>
    <message>
        <source>when a C or C++ file of the folder is opened</source>
        <translation>打开此文件夹中的 C 或 C++ 文件时</translation>
    </message>
    <message>
        <source>when the project is started</source>
        <translation>启动此项目时</translation>
    </message>
    <message>
        <source>Visual Studio or dotnet</source>
        <translation>Visual Studio 或 dotnet</translation>
    </message>
    <message>
        <source>when a file of the folder is opened in an editor</source>
        <translation>在编辑器中打开此文件夹中的文件时</translation>
    </message>
    <message>
        <source>when a file of the folder is opened or renamed in an editor</source>
        <translation>在编辑器中打开或重命名此文件夹中的文件时</translation>
    </message>
    <message>
        <source>when the project is opened or built</source>
        <translation>打开或构建此项目时</translation>
    </message>
    <message>
        <source>when a task or debugging is started</source>
        <translation>启动任务或调试时</translation>
    </message>
    <message>
        <source>when the project is opened in one</source>
        <translation>在其中打开此项目时</translation>
    </message>
    <message>
        <source>the workspace in the cloud</source>
        <translation>云端工作区</translation>
    </message>
    <message>
        <source>when the project is opened</source>
        <translation>打开此项目时</translation>
    </message>
    <message>
        <source>Replit, Firebase Studio, StackBlitz or CodeSandbox</source>
        <translation>Replit、Firebase Studio、StackBlitz 或 CodeSandbox</translation>
    </message>
    <message>
        <source>when it opens the folder in a container</source>
        <translation>在容器中打开此文件夹时</translation>
    </message>
    <message>
        <source>the editor</source>
        <translation>编辑器</translation>
    </message>
    <message>
        <source>JetBrains IDEs</source>
        <translation>JetBrains IDE</translation>
    </message>
    <message>
        <source>when a file of the folder is opened</source>
        <translation>打开此文件夹中的文件时</translation>
    </message>
    <message>
        <source>when it is started in the folder</source>
        <translation>在此文件夹中启动时</translation>
    </message>
    <message>
        <source>when the project is built</source>
        <translation>构建此项目时</translation>
    </message>
    <message>
        <source>when the folder is opened, built or debugged</source>
        <translation>打开、构建或调试此文件夹时</translation>
    </message>
    <message>
        <source>when a file of the folder is opened or saved in an editor</source>
        <translation>在编辑器中打开或保存此文件夹中的文件时</translation>
    </message>
    <message>
        <source>the Lua language server</source>
        <translation>Lua 语言服务器</translation>
    </message>
    <message>
        <source>Metals or IntelliJ IDEA</source>
        <translation>Metals 或 IntelliJ IDEA</translation>
    </message>
    <message>
        <source>the Haskell language server</source>
        <translation>Haskell 语言服务器</translation>
    </message>
    <message>
        <source>when a document is built</source>
        <translation>生成文档时</translation>
    </message>
    <message>
        <source>when it works in the folder</source>
        <translation>在此文件夹中工作时</translation>
    </message>
    <message>
        <source>when the plugin is used</source>
        <translation>使用此插件时</translation>
    </message>
    <message>
        <source>when a shell enters the folder</source>
        <translation>shell 进入此文件夹时</translation>
    </message>
    <message>
        <source>mise or asdf</source>
        <translation>mise 或 asdf</translation>
    </message>
    <message>
        <source>at every start</source>
        <translation>每次启动时</translation>
    </message>
    <message>
        <source>the Python debugger</source>
        <translation>Python 调试器</translation>
    </message>
    <message>
        <source>when Yarn starts it, or an editor opens the project</source>
        <translation>由 Yarn 启动或编辑器打开此项目时</translation>
    </message>
    <message>
        <source>Node.js and the editor</source>
        <translation>Node.js 和编辑器</translation>
    </message>
    <message>
        <source>Ruby&apos;s console</source>
        <translation>Ruby 控制台</translation>
    </message>
    <message>
        <source>at the next test of Perl</source>
        <translation>下次运行 Perl 测试时</translation>
    </message>
    <message>
        <source>when somebody pushes it</source>
        <translation>有人推送此文件时</translation>
    </message>
    <message>
        <source>when a workflow uses it</source>
        <translation>工作流使用此文件时</translation>
    </message>
    <message>
        <source>Read the Docs</source>
        <translation>Read the Docs</translation>
    </message>
    <message>
        <source>when somebody opens it or the disk</source>
        <translation>有人打开此文件或所在磁盘时</translation>
    </message>
    <message>
        <source>the desktop</source>
        <translation>桌面环境</translation>
    </message>
    <message>
        <source>when a page of the folder is asked for</source>
        <translation>请求此文件夹中的页面时</translation>
    </message>
    <message>
        <source>a web server</source>
        <translation>Web 服务器</translation>
    </message>
    <message>
        <source>at the next build</source>
        <translation>下次构建时</translation>
    </message>
    <message>
        <source>when it is started next</source>
        <translation>下次启动时</translation>
    </message>
    <message>
        <source>Foreman or Heroku</source>
        <translation>Foreman 或 Heroku</translation>
    </message>
    <message>
        <source>nodemon or Air</source>
        <translation>nodemon 或 Air</translation>
    </message>
    <message>
        <source>Django, Rails or Laravel</source>
        <translation>Django、Rails 或 Laravel</translation>
    </message>
    <message>
        <source>when documents are built</source>
        <translation>生成文档时</translation>
    </message>
    <message>
        <source>Sphinx, MkDocs or mdBook</source>
        <translation>Sphinx、MkDocs 或 mdBook</translation>
    </message>
    <message>
        <source>at the next build or deployment</source>
        <translation>下次构建或部署时</translation>
    </message>
    <message>
        <source>when its stages are run next</source>
        <translation>下次运行其阶段时</translation>
    </message>
    <message>
        <source>at the next install</source>
        <translation>下次安装时</translation>
    </message>
    <message>
        <source>at the next install, build or test</source>
        <translation>下次安装、构建或测试时</translation>
    </message>
    <message>
        <source>at the next build or test</source>
        <translation>下次构建或测试时</translation>
    </message>
    <message>
        <source>Lerna, Turborepo or Nx</source>
        <translation>Lerna、Turborepo 或 Nx</translation>
    </message>
    <message>
        <source>when its next task is run</source>
        <translation>下次运行其任务时</translation>
    </message>
    <message>
        <source>Grunt or Gulp</source>
        <translation>Grunt 或 Gulp</translation>
    </message>
    <message>
        <source>at the next build or test, or when it is started</source>
        <translation>下次构建、测试或启动时</translation>
    </message>
    <message>
        <source>at the next build, or when it is started</source>
        <translation>下次构建或启动时</translation>
    </message>
    <message>
        <source>at the next test</source>
        <translation>下次测试时</translation>
    </message>
    <message>
        <source>at the next check</source>
        <translation>下次检查时</translation>
    </message>
    <message>
        <source>at the next release</source>
        <translation>下次发布时</translation>
    </message>
    <message>
        <source>at the next build, or when a file of the folder is opened</source>
        <translation>下次构建或打开此文件夹中的文件时</translation>
    </message>
    <message>
        <source>GraphQL Code Generator or the GraphQL language server</source>
        <translation>GraphQL Code Generator 或 GraphQL 语言服务器</translation>
    </message>
    <message>
        <source>at the next check, or when a file is saved in an editor</source>
        <translation>下次检查或在编辑器中保存文件时</translation>
    </message>
    <message>
        <source>at the next build, test or check</source>
        <translation>下次构建、测试或检查时</translation>
    </message>
    <message>
        <source>the builder or checker that it sets up</source>
        <translation>由它配置的构建或检查程序</translation>
    </message>
    <message>
        <source>at the next install, test or check</source>
        <translation>下次安装、测试或检查时</translation>
    </message>
    <message>
        <source>pip or pytest</source>
        <translation>pip 或 pytest</translation>
    </message>
    <message>
        <source>tox or Nox</source>
        <translation>tox 或 Nox</translation>
    </message>
    <message>
        <source>at the next install or run</source>
        <translation>下次安装或运行时</translation>
    </message>
    <message>
        <source>at the next install or build</source>
        <translation>下次安装或构建时</translation>
    </message>
    <message>
        <source>when the build is set up</source>
        <translation>配置构建时</translation>
    </message>
    <message>
        <source>a shell</source>
        <translation>shell</translation>
    </message>
    <message>
        <source>SCons or Waf</source>
        <translation>SCons 或 Waf</translation>
    </message>
    <message>
        <source>Ninja, xmake, Premake or Zig</source>
        <translation>Ninja、xmake、Premake 或 Zig</translation>
    </message>
    <message>
        <source>at the next build, or when the project is opened</source>
        <translation>下次构建或打开此项目时</translation>
    </message>
    <message>
        <source>at the next build, or when a file of the project is opened</source>
        <translation>下次构建或打开此项目中的文件时</translation>
    </message>
    <message>
        <source>Leiningen or Clojure</source>
        <translation>Leiningen 或 Clojure</translation>
    </message>
    <message>
        <source>MSBuild or NuGet</source>
        <translation>MSBuild 或 NuGet</translation>
    </message>
    <message>
        <source>at the next install, test or build</source>
        <translation>下次安装、测试或构建时</translation>
    </message>
    <message>
        <source>Rake or Bundler</source>
        <translation>Rake 或 Bundler</translation>
    </message>
    <message>
        <source>at the next test or check</source>
        <translation>下次测试或检查时</translation>
    </message>
    <message>
        <source>RSpec or RuboCop</source>
        <translation>RSpec 或 RuboCop</translation>
    </message>
    <message>
        <source>CocoaPods or fastlane</source>
        <translation>CocoaPods 或 fastlane</translation>
    </message>
    <message>
        <source>at the next build or start of a container</source>
        <translation>下次构建或启动容器时</translation>
    </message>
    <message>
        <source>Mix or Rebar</source>
        <translation>Mix 或 Rebar</translation>
    </message>
    <message>
        <source>Swift or Xcode</source>
        <translation>Swift 或 Xcode</translation>
    </message>
    <message>
        <source>Cabal or Stack</source>
        <translation>Cabal 或 Stack</translation>
    </message>
    <message>
        <source>at the next install or test</source>
        <translation>下次安装或测试时</translation>
    </message>
    <message>
        <source>Perl&apos;s installer</source>
        <translation>Perl 安装程序</translation>
    </message>
    <message>
        <source>when they are started next</source>
        <translation>下次启动时</translation>
    </message>
    <message>
        <source>the programs of the project</source>
        <translation>此项目的程序</translation>
    </message>
    <message>
        <source>when a terminal is opened or you log in</source>
        <translation>打开终端或您登录时</translation>
    </message>
    <message>
        <source>your shell</source>
        <translation>您的 shell</translation>
    </message>
    <message>
        <source>when you log in or start a program</source>
        <translation>您登录或启动程序时</translation>
    </message>
    <message>
        <source>your desktop</source>
        <translation>您的桌面环境</translation>
    </message>
    <message>
        <source>when you type a command of that name</source>
        <translation>您输入同名命令时</translation>
    </message>
    <message>
        <source>when it is started</source>
        <translation>启动时</translation>
    </message>
    <message>
        <source>when a terminal is opened</source>
        <translation>打开终端时</translation>
    </message>
</context>
<context>
    <name>ServerDescription</name>
    <message>
        <source>The server&apos;s own words</source>
        <translation>服务器自己的说明</translation>
    </message>
    <message>
        <source>A tool of the server “{0}”. The server&apos;s description (not verified):</source>
        <translation>服务器“{0}”的工具。服务器的说明（未经核实）：</translation>
    </message>
</context>
<context>
    <name>ServerEditor</name>
    <message>
        <source>A program on this computer</source>
        <translation>此计算机上的程序</translation>
    </message>
    <message>
        <source>An address</source>
        <translation>地址</translation>
    </message>
    <message>
        <source>Give the server a title.</source>
        <translation>请为服务器取一个标题。</translation>
    </message>
    <message>
        <source>Title</source>
        <translation>标题</translation>
    </message>
    <message>
        <source>You see this title when you are asked about a tool of the server. Rules use it too.</source>
        <translation>询问您是否允许服务器的工具时会显示此标题。规则也使用它。</translation>
    </message>
    <message>
        <source>Its tools</source>
        <translation>它的工具</translation>
    </message>
    <message>
        <source>Time limit</source>
        <translation>时间限制</translation>
    </message>
    <message>
        <source> s</source>
        <translation> 秒</translation>
    </message>
    <message>
        <source>Trust what it says about its tools</source>
        <translation>信任它对自身工具的说明</translation>
    </message>
    <message>
        <source>Tools that the server calls harmless then run without asking you. Leave this off unless you trust the maker of the server: nobody checks what the server says.</source>
        <translation>这样，它称为无害的工具会在不询问您的情况下运行。除非您信任服务器的开发者，否则请保持关闭：它对自身工具的说明没有任何人核实。</translation>
    </message>
</context>
<context>
    <name>ServerRequestDialog</name>
    <message>
        <source>Waiting questions</source>
        <translation>等待中的问题</translation>
    </message>
    <message>
        <source>{0} questions are waiting</source>
        <translation>{0} 个问题正在等待</translation>
    </message>
    <message>
        <source>Stop the agent</source>
        <translation>停止智能体</translation>
    </message>
    <message>
        <source>An MCP server asks</source>
        <translation>MCP 服务器的请求</translation>
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
        <translation>在对话“{0}”中。</translation>
    </message>
    <message>
        <source>“{0}” wants a model to answer</source>
        <translation>“{0}”希望由模型回答</translation>
    </message>
    <message>
        <source>A question to a model</source>
        <translation>给模型的问题</translation>
    </message>
    <message>
        <source>The server wrote the text below. It would be sent to your model in your name.</source>
        <translation>以下内容由服务器撰写；将以您的名义发送给您的模型。</translation>
    </message>
    <message>
        <source>Allow once</source>
        <translation>允许一次</translation>
    </message>
    <message>
        <source>Deny</source>
        <translation>拒绝</translation>
    </message>
    <message>
        <source>Send this answer to “{0}”?</source>
        <translation>将此回答发送给“{0}”？</translation>
    </message>
    <message>
        <source>A model&apos;s answer</source>
        <translation>模型的回答</translation>
    </message>
    <message>
        <source>Check that the answer contains nothing that this server should not have.</source>
        <translation>请检查回答中没有不应让此服务器得到的内容。</translation>
    </message>
    <message>
        <source>Send</source>
        <translation>发送</translation>
    </message>
    <message>
        <source>Do not send</source>
        <translation>不发送</translation>
    </message>
    <message>
        <source>Decline</source>
        <translation>拒绝</translation>
    </message>
    <message>
        <source>“{0}” asks you to fill in a form</source>
        <translation>“{0}”请您填写表单</translation>
    </message>
    <message>
        <source>A form</source>
        <translation>表单</translation>
    </message>
    <message>
        <source>What you send goes to this MCP server. Do not enter a password or a key.</source>
        <translation>您发送的内容会传给此 MCP 服务器。请勿输入密码或密钥。</translation>
    </message>
    <message>
        <source>“{0}” asks you to open a page</source>
        <translation>“{0}”请您打开页面</translation>
    </message>
    <message>
        <source>A page to open</source>
        <translation>要打开的页面</translation>
    </message>
    <message>
        <source>This MCP server wants you to do something in your browser.</source>
        <translation>此 MCP 服务器希望您在浏览器中进行某项操作。</translation>
    </message>
    <message>
        <source>I am done</source>
        <translation>我已完成</translation>
    </message>
</context>
<context>
    <name>SessionControlsPresenter</name>
    <message>
        <source>The waiting message was removed.</source>
        <translation>等待中的消息已移除。</translation>
    </message>
</context>
<context>
    <name>SessionKeyLink</name>
    <message>
        <source>Keep it in memory</source>
        <translation>保留在内存中</translation>
    </message>
    <message>
        <source>Keep it in memory until the program is closed</source>
        <translation>保留在内存中，直到程序关闭</translation>
    </message>
</context>
<context>
    <name>SettingsDialog</name>
    <message>
        <source>Restart now</source>
        <translation>立即重新启动</translation>
    </message>
    <message>
        <source>Close Desktop Agent and start it again to see it in this language: {0}.</source>
        <translation>关闭 Desktop Agent 并重新启动，即可看到此语言的界面：{0}。</translation>
    </message>
    <message>
        <source>Settings</source>
        <translation>设置</translation>
    </message>
    <message>
        <source>Sections</source>
        <translation>类别</translation>
    </message>
    <message>
        <source>Section</source>
        <translation>类别</translation>
    </message>
    <message>
        <source>About · version {0}</source>
        <translation>关于 · 版本 {0}</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>关闭</translation>
    </message>
</context>
<context>
    <name>SettingsPages</name>
    <message>
        <source>Connections</source>
        <translation>连接</translation>
    </message>
    <message>
        <source>General</source>
        <translation>常规</translation>
    </message>
    <message>
        <source>Tools and safety</source>
        <translation>工具与安全</translation>
    </message>
    <message>
        <source>Data</source>
        <translation>数据</translation>
    </message>
    <message>
        <source>Providers and keys</source>
        <translation>提供商和密钥</translation>
    </message>
    <message>
        <source>Model files</source>
        <translation>模型文件</translation>
    </message>
    <message>
        <source>Modes</source>
        <translation>模式</translation>
    </message>
    <message>
        <source>Rules</source>
        <translation>规则</translation>
    </message>
    <message>
        <source>Decisions</source>
        <translation>决定</translation>
    </message>
    <message>
        <source>MCP servers</source>
        <translation>MCP 服务器</translation>
    </message>
    <message>
        <source>Specialists</source>
        <translation>专家</translation>
    </message>
    <message>
        <source>Keyboard shortcuts</source>
        <translation>键盘快捷键</translation>
    </message>
    <message>
        <source>Other assistants</source>
        <translation>其他助手</translation>
    </message>
    <message>
        <source>API key, address, connect</source>
        <comment>words that find this page</comment>
        <translation>API 密钥、地址、连接</translation>
    </message>
    <message>
        <source>permissions, always allow, deny, revoke</source>
        <comment>words that find this page</comment>
        <translation>权限、始终允许、拒绝、撤销</translation>
    </message>
    <message>
        <source>permissions, log, tool calls, export</source>
        <comment>words that find this page</comment>
        <translation>权限、日志、工具调用、导出</translation>
    </message>
    <message>
        <source>permissions, copy a mode</source>
        <comment>words that find this page</comment>
        <translation>权限、复制模式</translation>
    </message>
    <message>
        <source>keys</source>
        <comment>words that find this page</comment>
        <translation>按键、快捷键</translation>
    </message>
    <message>
        <source>back up, restore, copies, data folder, check, compact</source>
        <comment>words that find this page</comment>
        <translation>备份、恢复、副本、数据文件夹、检查、压缩</translation>
    </message>
    <message>
        <source>budgets, cost, price, limit, chart</source>
        <comment>words that find this page</comment>
        <translation>预算、费用、价格、上限、图表</translation>
    </message>
    <message>
        <source>English, German, Chinese</source>
        <comment>words that find this setting</comment>
        <translation>英语、德语、中文</translation>
    </message>
</context>
<context>
    <name>SettingsSearch</name>
    <message>
        <source>Nothing found.</source>
        <translation>未找到任何内容。</translation>
    </message>
    <message>
        <source>Found settings</source>
        <translation>找到的设置</translation>
    </message>
    <message>
        <source>Search settings</source>
        <translation>搜索设置</translation>
    </message>
</context>
<context>
    <name>ShortcutBar</name>
    <message>
        <source>You were typing when this opened. Press Tab or click here to use the keys.</source>
        <translation>打开时您正在输入。要使用按键，请按 Tab 或在此处单击。</translation>
    </message>
</context>
<context>
    <name>ShortcutSettings</name>
    <message>
        <source>Search shortcuts</source>
        <translation>搜索快捷键</translation>
    </message>
    <message>
        <source>Find by pressing keys</source>
        <translation>按下按键来查找</translation>
    </message>
    <message>
        <source>Find by keys</source>
        <translation>按快捷键查找</translation>
    </message>
    <message>
        <source>Keys</source>
        <translation>按键</translation>
    </message>
    <message>
        <source>Press keys</source>
        <translation>请按键</translation>
    </message>
    <message>
        <source>Reset</source>
        <translation>重置</translation>
    </message>
    <message>
        <source>No keys</source>
        <translation>无按键</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>取消</translation>
    </message>
    <message>
        <source>Take over</source>
        <translation>接管</translation>
    </message>
    <message>
        <source>Take the keys over</source>
        <translation>接管这些按键</translation>
    </message>
    <message>
        <source>Reset all shortcuts</source>
        <translation>重置所有快捷键</translation>
    </message>
    <message>
        <source>Reset all</source>
        <translation>全部重置</translation>
    </message>
    <message>
        <source>Reset all shortcuts now</source>
        <translation>立即重置所有快捷键</translation>
    </message>
    <message>
        <source>{0} is used for editing text.</source>
        <translation>{0} 用于编辑文本。</translation>
    </message>
    <message>
        <source>{0} is used in the message editor.</source>
        <translation>{0} 用于消息框。</translation>
    </message>
    <message>
        <source>{0} alone is needed for typing. Combine it with Ctrl or Alt.</source>
        <translation>单独的 {0} 用于输入文字。请与 Ctrl 或 Alt 组合使用。</translation>
    </message>
    <message>
        <source>{0} (changed)</source>
        <translation>{0}（已更改）</translation>
    </message>
    <message>
        <source>none</source>
        <translation>无</translation>
    </message>
    <message>
        <source>No action found with these words or keys.</source>
        <translation>未找到包含这些词或按键的操作。</translation>
    </message>
    <message>
        <source>Keys of “{0}”</source>
        <translation>“{0}”的按键</translation>
    </message>
    <message>
        <source>{0} is used by “{1}”.</source>
        <translation>{0} 已用于“{1}”。</translation>
    </message>
    <message>
        <source>{0} is used by “{1}”. Take it over? “{1}” then has no keys.</source>
        <translation>{0} 已用于“{1}”。要接管吗？之后“{1}”将没有按键。</translation>
    </message>
    <message>
        <source>All actions get their original keys.</source>
        <translation>所有操作都会恢复最初的按键。</translation>
    </message>
    <message>
        <source>Shortcuts</source>
        <translation>快捷键</translation>
    </message>
    <message>
        <source>Choose an action and press its new keys below the list. The keys of the approval dialog are fixed, so that nothing is allowed by mistake.</source>
        <translation>选择一个操作，然后在列表下方按下新的按键。批准对话框的按键是固定的，以免误允许任何操作。</translation>
    </message>
</context>
<context>
    <name>ShortcutsPage</name>
    <message>
        <source>Keyboard shortcuts</source>
        <translation>键盘快捷键</translation>
    </message>
    <message>
        <source>Conversation 1 to {0} of the list</source>
        <translation>列表中的第 1 到第 {0} 个对话</translation>
    </message>
</context>
<context>
    <name>ShortcutsPresenter</name>
    <message>
        <source>These keys are fixed.</source>
        <translation>这些按键是固定的。</translation>
    </message>
</context>
<context>
    <name>SidebarFooter</name>
    <message>
        <source>Scheduled prompts</source>
        <translation>定时提示词</translation>
    </message>
    <message>
        <source>Trash</source>
        <translation>回收站</translation>
    </message>
    <message>
        <source>Commands</source>
        <translation>命令</translation>
    </message>
    <message>
        <source>Help</source>
        <translation>帮助</translation>
    </message>
</context>
<context>
    <name>SignInBar</name>
    <message>
        <source>Sign in…</source>
        <translation>登录…</translation>
    </message>
    <message>
        <source>Sign in to {0}</source>
        <translation>登录 {0}</translation>
    </message>
    <message>
        <source>Opens a page of the server in your browser</source>
        <translation>在浏览器中打开服务器的页面</translation>
    </message>
    <message>
        <source>Sign out</source>
        <translation>退出登录</translation>
    </message>
    <message>
        <source>Sign out of {0}</source>
        <translation>退出登录 {0}</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>取消</translation>
    </message>
    <message>
        <source>Cancel signing in</source>
        <translation>取消登录</translation>
    </message>
    <message>
        <source>Copy address</source>
        <translation>复制地址</translation>
    </message>
    <message>
        <source>Your browser opened a page of the server. Sign in there; Desktop Agent then continues by itself.</source>
        <translation>您的浏览器已打开服务器的页面。请在那里登录；之后 Desktop Agent 会自动继续。</translation>
    </message>
    <message>
        <source>The browser could not be opened. Copy the address, and open it in a browser yourself.</source>
        <translation>无法打开浏览器。请复制地址，并自行在浏览器中打开。</translation>
    </message>
    <message>
        <source>Asking the server where to sign in. Your browser opens then…</source>
        <translation>正在向服务器询问登录位置。随后会打开您的浏览器…</translation>
    </message>
    <message>
        <source>Address copied</source>
        <translation>已复制地址</translation>
    </message>
</context>
<context>
    <name>Size</name>
    <message>
        <source>${0}</source>
        <translation>${0}</translation>
    </message>
    <message>
        <source>{0} bytes</source>
        <translation>{0} 字节</translation>
    </message>
</context>
<context>
    <name>SpecialistCard</name>
    <message>
        <source>Specialist {0}</source>
        <translation>专家 {0}</translation>
    </message>
    <message>
        <source>Edit</source>
        <translation>编辑</translation>
    </message>
    <message>
        <source>Edit {0}</source>
        <translation>编辑 {0}</translation>
    </message>
    <message>
        <source>Remove {0}</source>
        <translation>移除 {0}</translation>
    </message>
    <message>
        <source>Remove</source>
        <translation>移除</translation>
    </message>
    <message>
        <source>none</source>
        <translation>无</translation>
    </message>
    <message>
        <source>Tools: {0}</source>
        <translation>工具：{0}</translation>
    </message>
    <message>
        <source>Model: {0}</source>
        <translation>模型：{0}</translation>
    </message>
    <message>
        <source>Budget: {0} %</source>
        <translation>预算：{0}%</translation>
    </message>
    <message>
        <source>At most {0} tokens</source>
        <translation>最多 {0} 个 token</translation>
    </message>
    <message>
        <source>At most {0}</source>
        <translation>最多 {0}</translation>
    </message>
    <message>
        <source>At most {0} min</source>
        <translation>最多 {0} 分钟</translation>
    </message>
</context>
<context>
    <name>SpecialistEditor</name>
    <message>
        <source>Specialist editor</source>
        <translation>专家编辑器</translation>
    </message>
    <message>
        <source>A name has letters from a to z, digits, “_” and “-”, and begins with a letter. Change it.</source>
        <translation>名称只能包含字母 a 到 z、数字、“_”和“-”，并以字母开头。请修改。</translation>
    </message>
    <message>
        <source>Another specialist or tool has this name. Choose another one.</source>
        <translation>另一个专家或工具已使用此名称。请另选一个。</translation>
    </message>
    <message>
        <source>Write the name of the model, or choose one from the list.</source>
        <translation>请写模型名称，或从列表中选择。</translation>
    </message>
    <message>
        <source>Name</source>
        <translation>名称</translation>
    </message>
    <message>
        <source>The agent reads the description to know whom to call. Write one.</source>
        <translation>智能体通过阅读描述来了解该调用谁。请写一个描述。</translation>
    </message>
    <message>
        <source>Description</source>
        <translation>描述</translation>
    </message>
    <message>
        <source>A specialist needs instructions. Write what it is and how it works.</source>
        <translation>专家需要指令。请写明它是什么以及如何工作。</translation>
    </message>
    <message>
        <source>Instructions</source>
        <translation>指令</translation>
    </message>
    <message>
        <source>The server of the conversation answers, so it must be one of its models.</source>
        <translation>由对话的服务器回答，因此必须是其模型之一。</translation>
    </message>
    <message>
        <source>Model</source>
        <translation>模型</translation>
    </message>
    <message>
        <source>Tools</source>
        <translation>工具</translation>
    </message>
    <message>
        <source>No limit</source>
        <translation>无限制</translation>
    </message>
    <message>
        <source>Share of the budget</source>
        <translation>预算份额</translation>
    </message>
    <message>
        <source>Share of the tokens and the cost that its caller has left.</source>
        <translation>占调用者剩余 token 和费用的份额。</translation>
    </message>
    <message>
        <source> tokens for each call</source>
        <translation> 个 token（每次调用）</translation>
    </message>
    <message>
        <source>Token limit</source>
        <translation>token 上限</translation>
    </message>
    <message>
        <source> for each call</source>
        <translation>（每次调用）</translation>
    </message>
    <message>
        <source>Cost limit</source>
        <translation>费用上限</translation>
    </message>
    <message>
        <source> minutes for each call</source>
        <translation> 分钟（每次调用）</translation>
    </message>
    <message>
        <source>Working time; waiting for you does not count.</source>
        <translation>指工作时间；等待您的时间不计。</translation>
    </message>
    <message>
        <source>Time limit</source>
        <translation>时间上限</translation>
    </message>
    <message>
        <source>Turn limit</source>
        <translation>轮数上限</translation>
    </message>
    <message>
        <source> turns for each call</source>
        <translation> 轮（每次调用）</translation>
    </message>
</context>
<context>
    <name>SpecialistSettings</name>
    <message>
        <source>Add specialist…</source>
        <translation>添加专家…</translation>
    </message>
    <message>
        <source>There is no specialist yet.</source>
        <translation>还没有专家。</translation>
    </message>
    <message>
        <source>A specialist is an agent with its own instructions, which the agent can call like a tool. It may never do more than the agent that calls it. Changes apply from the next message on.</source>
        <translation>专家是拥有自己指令的智能体，智能体可以像工具一样调用它。它的权限绝不会超过调用它的智能体。更改从下一条消息起生效。</translation>
    </message>
    <message>
        <source>The specialist “{0}” is removed. No conversation uses it from its next prompt on.</source>
        <translation>专家“{0}”已移除。从下一条提示词起，任何对话都不再使用它。</translation>
    </message>
</context>
<context>
    <name>SpellingSettings</name>
    <message>
        <source>For other languages put dictionaries of Hunspell (two files, .aff and .dic) into {0}.</source>
        <translation>如需其他语言，请将 Hunspell 词典（.aff 和 .dic 两个文件）放入 {0}。</translation>
    </message>
    <message>
        <source>Spelling cannot be checked on this system: the library for it is missing.</source>
        <translation>此系统无法检查拼写：缺少所需的库。</translation>
    </message>
    <message>
        <source>No dictionary was found: spelling is not checked.</source>
        <translation>未找到词典：不会检查拼写。</translation>
    </message>
    <message>
        <source>There is no dictionary for the language of your system.</source>
        <translation>没有适用于系统语言的词典。</translation>
    </message>
</context>
<context>
    <name>StarterMessages</name>
    <message>
        <source>Suggestions</source>
        <translation>建议</translation>
    </message>
    <message>
        <source>Try one of these:</source>
        <translation>试试其中之一：</translation>
    </message>
    <message>
        <source>Do not store this conversation</source>
        <translation>不保存此对话</translation>
    </message>
</context>
<context>
    <name>StartupError</name>
    <message>
        <source>Choose another data folder…</source>
        <translation>选择其他数据文件夹…</translation>
    </message>
    <message>
        <source>Try again</source>
        <translation>重试</translation>
    </message>
    <message>
        <source>Choose another data folder</source>
        <translation>选择其他数据文件夹</translation>
    </message>
</context>
<context>
    <name>StdioFields</name>
    <message>
        <source>For example npx or uvx</source>
        <translation>例如 npx 或 uvx</translation>
    </message>
    <message>
        <source>For example -y</source>
        <translation>例如 -y</translation>
    </message>
    <message>
        <source>Split it</source>
        <translation>拆分</translation>
    </message>
    <message>
        <source>Program</source>
        <translation>程序</translation>
    </message>
    <message>
        <source>One per line. No shell reads them: ~, * and $HOME stay as they are.</source>
        <translation>每行一个。不经过 shell：~、* 和 $HOME 保持原样。</translation>
    </message>
    <message>
        <source>Arguments</source>
        <translation>参数</translation>
    </message>
    <message>
        <source>Variables</source>
        <translation>变量</translation>
    </message>
    <message>
        <source>Enter the program that is started, for example npx or uvx.</source>
        <translation>请输入要启动的程序，例如 npx 或 uvx。</translation>
    </message>
    <message>
        <source>A program and its arguments cannot have NUL characters. Remove them.</source>
        <translation>程序及其参数不能包含 NUL 字符。请将其移除。</translation>
    </message>
    <message>
        <source>This is a whole command line: {0}</source>
        <translation>这是一整行命令：{0}</translation>
    </message>
    <message>
        <source>“{0}” seems to contain a secret. Arguments are kept in a file, and every program on this computer can read them: use a secret variable, if the server accepts one.</source>
        <translation>“{0}”似乎包含机密信息。参数保存在文件中，此计算机上的每个程序都可以读取：如果服务器接受，请使用机密变量。</translation>
    </message>
    <message>
        <source>The secret variables were entered for the previous program and are not given to another one. Enter them again.</source>
        <translation>机密变量是为先前的程序输入的，不会提供给其他程序。请重新输入。</translation>
    </message>
    <message>
        <source>Split into program and arguments</source>
        <translation>拆分为程序和参数</translation>
    </message>
</context>
<context>
    <name>StorageSettings</name>
    <message>
        <source>Check now</source>
        <translation>立即检查</translation>
    </message>
    <message>
        <source>Open folder</source>
        <translation>打开文件夹</translation>
    </message>
    <message>
        <source>Back up now</source>
        <translation>立即备份</translation>
    </message>
    <message>
        <source>Restore into a new folder…</source>
        <translation>还原到新文件夹…</translation>
    </message>
    <message>
        <source>Delete backup…</source>
        <translation>删除备份…</translation>
    </message>
    <message>
        <source>Compact</source>
        <translation>压缩</translation>
    </message>
    <message>
        <source>Cancel compacting</source>
        <translation>取消压缩</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>取消</translation>
    </message>
    <message>
        <source>Open the restored folder</source>
        <translation>打开还原的文件夹</translation>
    </message>
    <message>
        <source>Backups</source>
        <translation>备份</translation>
    </message>
    <message>
        <source>There is no backup yet.</source>
        <translation>还没有备份。</translation>
    </message>
    <message>
        <source>Conversations: {0}, in the trash: {1}, messages: {2}, on the disk: {3}</source>
        <translation>对话：{0}，回收站中：{1}，消息：{2}，磁盘占用：{3}</translation>
    </message>
    <message>
        <source>Not checked yet.</source>
        <translation>尚未检查。</translation>
    </message>
    <message>
        <source>Checked last: {0}</source>
        <translation>上次检查：{0}</translation>
    </message>
    <message>
        <source>Checking…</source>
        <translation>正在检查…</translation>
    </message>
    <message>
        <source>Automatic. {0}</source>
        <translation>自动。{0}</translation>
    </message>
    <message>
        <source>Backup of {0}: {1}, {2}</source>
        <translation>{0} 的备份：{1}，{2}</translation>
    </message>
    <message>
        <source>It cannot be brought back. Conversations and other backups stay.</source>
        <translation>删除后无法恢复。对话和其他备份会保留。</translation>
    </message>
    <message>
        <source>Delete this backup?</source>
        <translation>删除此备份？</translation>
    </message>
    <message>
        <source>It cannot be brought back. Your current conversations stay.</source>
        <translation>删除后无法恢复。现在的对话会保留。</translation>
    </message>
    <message>
        <source>Delete the copy that was made before an upgrade?</source>
        <translation>删除升级前创建的副本？</translation>
    </message>
    <message>
        <source>Delete backup</source>
        <translation>删除备份</translation>
    </message>
    <message>
        <source>Keep</source>
        <translation>保留</translation>
    </message>
    <message>
        <source>Delete for good</source>
        <translation>永久删除</translation>
    </message>
    <message>
        <source>Data folder</source>
        <translation>数据文件夹</translation>
    </message>
    <message>
        <source>Frees the space of deleted conversations</source>
        <translation>释放已删除对话占用的空间</translation>
    </message>
    <message>
        <source>Reads everything saved, and repairs damage if possible</source>
        <translation>读取所有已保存的内容，并尽可能修复损坏</translation>
    </message>
    <message>
        <source>Conversations, pictures and settings are in one folder on this computer. The program checks the conversations now and then, when it is idle.</source>
        <translation>对话、图片和设置位于此计算机的一个文件夹中。程序会不时在空闲时检查对话。</translation>
    </message>
    <message>
        <source>A backup holds conversations, pictures, saved files and settings; keys stay in the keyring. It is restored into a new folder, so nothing that is here is overwritten.</source>
        <translation>备份包含对话、图片、已保存的文件和设置；密钥保留在密钥环中。备份会还原到新文件夹，因此不会覆盖这里的任何内容。</translation>
    </message>
    <message>
        <source>Conversations: {0}, messages: {1}</source>
        <translation>对话：{0}，消息：{1}</translation>
    </message>
    <message>
        <source>Restore into an empty folder</source>
        <translation>还原到空文件夹</translation>
    </message>
</context>
<context>
    <name>TagDialog</name>
    <message>
        <source>Cancel</source>
        <translation>取消</translation>
    </message>
    <message>
        <source>Done</source>
        <translation>完成</translation>
    </message>
    <message>
        <source>Tags</source>
        <translation>标签</translation>
    </message>
    <message>
        <source>Find a tag, or name a new one</source>
        <translation>查找标签，或输入新名称</translation>
    </message>
    <message>
        <source>New tag “{0}”</source>
        <translation>新标签“{0}”</translation>
    </message>
    <message>
        <source>Type the name of a tag.</source>
        <translation>请输入标签名称。</translation>
    </message>
    <message>
        <source>assigned</source>
        <translation>已添加</translation>
    </message>
    <message>
        <source>assigned to some</source>
        <translation>部分已添加</translation>
    </message>
    <message>
        <source>not assigned</source>
        <translation>未添加</translation>
    </message>
</context>
<context>
    <name>Text</name>
    <message>
        <source>{0} ({1})</source>
        <translation>{0}（{1}）</translation>
    </message>
    <message>
        <source>{0}: {1}</source>
        <translation>{0}：{1}</translation>
    </message>
    <message>
        <source>{0}, {1}</source>
        <comment>two names in a list</comment>
        <translation>{0}、{1}</translation>
    </message>
    <message>
        <source>{0} {1}</source>
        <comment>two sentences</comment>
        <translation>{0}{1}</translation>
    </message>
</context>
<context>
    <name>TextMenu</name>
    <message>
        <source>Menu: {0}</source>
        <translation>菜单：{0}</translation>
    </message>
    <message>
        <source>Text</source>
        <translation>文本</translation>
    </message>
</context>
<context>
    <name>TextView</name>
    <message>
        <source>Preview of the effect</source>
        <translation>效果预览</translation>
    </message>
    <message>
        <source>What will happen. Not all of it is shown: {0} characters more</source>
        <translation>将会发生的情况。未显示全部：还有 {0} 个字符</translation>
    </message>
    <message>
        <source>What will happen</source>
        <translation>将会发生的情况</translation>
    </message>
    <message>
        <source>{0}. Not all of it is shown.</source>
        <translation>{0}。未显示全部。</translation>
    </message>
    <message>
        <source>1 unchanged line</source>
        <translation>1 行未更改</translation>
    </message>
    <message>
        <source>{0} unchanged lines</source>
        <translation>{0} 行未更改</translation>
    </message>
    <message>
        <source>{0} more lines, not shown</source>
        <translation>还有 {0} 行未显示</translation>
    </message>
    <message>
        <source>New file: {0}</source>
        <translation>新文件：{0}</translation>
    </message>
    <message>
        <source>Deletes {0}: 1 line</source>
        <translation>删除 {0}：1 行</translation>
    </message>
    <message>
        <source>Deletes {0}: {1} lines</source>
        <translation>删除 {0}：{1} 行</translation>
    </message>
    <message>
        <source>{0}: no change</source>
        <translation>{0}：无更改</translation>
    </message>
    <message>
        <source>{0}: 1 line added, {2} removed</source>
        <translation>{0}：添加 1 行，移除 {2} 行</translation>
    </message>
    <message>
        <source>{0}: {1} lines added, {2} removed</source>
        <translation>{0}：添加 {1} 行，移除 {2} 行</translation>
    </message>
</context>
<context>
    <name>TimingEditor</name>
    <message>
        <source>Once</source>
        <translation>一次</translation>
    </message>
    <message>
        <source>Every day</source>
        <translation>每天</translation>
    </message>
    <message>
        <source>On days of the week</source>
        <translation>按星期</translation>
    </message>
    <message>
        <source>Every month</source>
        <translation>每月</translation>
    </message>
    <message>
        <source>Every … minutes</source>
        <translation>每隔若干分钟</translation>
    </message>
    <message>
        <source>By a cron line</source>
        <translation>按 cron 表达式</translation>
    </message>
    <message>
        <source>Last day</source>
        <translation>最后一天</translation>
    </message>
    <message>
        <source> minutes</source>
        <translation> 分钟</translation>
    </message>
    <message>
        <source>Choose at least one day.</source>
        <translation>请至少选择一天。</translation>
    </message>
    <message>
        <source>Write a cron line of five fields.</source>
        <translation>请输入有五个字段的 cron 表达式。</translation>
    </message>
    <message>
        <source>The next runs:</source>
        <translation>接下来的运行：</translation>
    </message>
    <message>
        <source>How often</source>
        <translation>频率</translation>
    </message>
    <message>
        <source>Day</source>
        <translation>日期</translation>
    </message>
    <message>
        <source>Time</source>
        <translation>时间</translation>
    </message>
    <message>
        <source>Day of the month</source>
        <translation>每月的日期</translation>
    </message>
    <message>
        <source>Days of the week</source>
        <translation>星期几</translation>
    </message>
    <message>
        <source>Minutes between two runs</source>
        <translation>两次运行之间的分钟数</translation>
    </message>
    <message>
        <source>Cron line</source>
        <translation>cron 表达式</translation>
    </message>
    <message>
        <source>Minute, hour, day, month and weekday.</source>
        <translation>分、时、日、月和星期。</translation>
    </message>
</context>
<context>
    <name>TitleDialog</name>
    <message>
        <source>Title</source>
        <translation>标题</translation>
    </message>
    <message>
        <source>Rename</source>
        <translation>重命名</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>取消</translation>
    </message>
</context>
<context>
    <name>ToolChecklist</name>
    <message>
        <source>Find a tool</source>
        <translation>查找工具</translation>
    </message>
    <message>
        <source>Not available now; the caller must have them</source>
        <translation>现在不可用；须由调用者拥有</translation>
    </message>
    <message>
        <source>{0} – may change something</source>
        <translation>{0} – 可能更改内容</translation>
    </message>
    <message>
        <source>None: it only thinks and answers.</source>
        <translation>无：只思考和回答。</translation>
    </message>
    <message>
        <source>{0} chosen. It never has more tools than its caller.</source>
        <translation>已选择 {0} 个。它的工具绝不会多于调用者。</translation>
    </message>
</context>
<context>
    <name>ToolLabels</name>
    <message>
        <source>Reads files</source>
        <translation>读取文件</translation>
    </message>
    <message>
        <source>Writes files</source>
        <translation>写入文件</translation>
    </message>
    <message>
        <source>Runs commands</source>
        <translation>运行命令</translation>
    </message>
    <message>
        <source>Uses the network</source>
        <translation>使用网络</translation>
    </message>
    <message>
        <source>Starts another agent</source>
        <translation>启动另一个智能体</translation>
    </message>
    <message>
        <source>Only reads</source>
        <translation>只读取</translation>
    </message>
    <message>
        <source>Can change things</source>
        <translation>可更改内容</translation>
    </message>
    <message>
        <source>Search the web</source>
        <translation>搜索网页</translation>
    </message>
    <message>
        <source>Search results</source>
        <translation>搜索结果</translation>
    </message>
    <message>
        <source>Run code</source>
        <translation>运行代码</translation>
    </message>
    <message>
        <source>Output of the code</source>
        <translation>代码运行结果</translation>
    </message>
    <message>
        <source>Read a web page</source>
        <translation>读取网页</translation>
    </message>
    <message>
        <source>Search in files</source>
        <translation>在文件中搜索</translation>
    </message>
</context>
<context>
    <name>ToolListModel</name>
    <message>
        <source>Changed: choose again</source>
        <translation>已更改：请重新选择</translation>
    </message>
</context>
<context>
    <name>ToolServers</name>
    <message>
        <source>Waits until a conversation needs it.</source>
        <translation>对话需要时才会启动。</translation>
    </message>
    <message>
        <source>Starting…</source>
        <translation>正在启动…</translation>
    </message>
    <message>
        <source>It could not be started.</source>
        <translation>无法启动。</translation>
    </message>
    <message>
        <source>You need to sign in.</source>
        <translation>您需要登录。</translation>
    </message>
    <message>
        <source>Off. Last test: {0}</source>
        <translation>已关闭。上次测试：{0}</translation>
    </message>
    <message>
        <source>Off. The last test succeeded</source>
        <translation>已关闭。上次测试成功</translation>
    </message>
    <message>
        <source>Off</source>
        <translation>关闭</translation>
    </message>
    <message>
        <source>Look at its log, correct it with Edit, then press Test.</source>
        <translation>请查看其日志，通过“编辑”更正，然后按“测试”。</translation>
    </message>
    <message>
        <source>Running</source>
        <translation>运行中</translation>
    </message>
    <message>
        <source>protocol {0}</source>
        <translation>协议 {0}</translation>
    </message>
    <message>
        <source>1 tool</source>
        <translation>1 个工具</translation>
    </message>
    <message>
        <source>{0} tools</source>
        <translation>{0} 个工具</translation>
    </message>
    <message>
        <source>The server says nothing about it.</source>
        <translation>服务器对此没有说明。</translation>
    </message>
    <message>
        <source>The server says: it only reads.</source>
        <translation>服务器称：它只读取。</translation>
    </message>
    <message>
        <source>The server says: it can change things.</source>
        <translation>服务器称：它可更改内容。</translation>
    </message>
    <message>
        <source>text</source>
        <translation>文本</translation>
    </message>
    <message>
        <source>whole number</source>
        <translation>整数</translation>
    </message>
    <message>
        <source>number</source>
        <translation>数字</translation>
    </message>
    <message>
        <source>yes or no</source>
        <translation>是或否</translation>
    </message>
    <message>
        <source>object</source>
        <translation>对象</translation>
    </message>
    <message>
        <source>nothing</source>
        <translation>空</translation>
    </message>
    <message>
        <source>list</source>
        <translation>列表</translation>
    </message>
    <message>
        <source>list ({0})</source>
        <translation>列表（{0}）</translation>
    </message>
    <message>
        <source> or </source>
        <translation> 或 </translation>
    </message>
    <message>
        <source>anything</source>
        <translation>任意</translation>
    </message>
</context>
<context>
    <name>Tools</name>
    <message>
        <source>Built in</source>
        <translation>内置</translation>
    </message>
    <message>
        <source>{0} (not here now)</source>
        <translation>{0}（现在不在这里）</translation>
    </message>
    <message>
        <source>Every tool</source>
        <translation>每个工具</translation>
    </message>
</context>
<context>
    <name>ToolsPane</name>
    <message>
        <source>Description of the tool</source>
        <translation>工具的描述</translation>
    </message>
    <message>
        <source>The agent may call it</source>
        <translation>智能体可以调用它</translation>
    </message>
    <message>
        <source>This server offers no tools.</source>
        <translation>此服务器不提供工具。</translation>
    </message>
    <message>
        <source>The tools of this server are not known yet. Press Test to see them.</source>
        <translation>尚不知道此服务器的工具。按“测试”即可查看。</translation>
    </message>
    <message>
        <source>It has no description.</source>
        <translation>没有描述。</translation>
    </message>
    <message>
        <source>How to treat {0}</source>
        <translation>{0} 按什么处理</translation>
    </message>
    <message>
        <source>The agent may call {0}</source>
        <translation>智能体可以调用 {0}</translation>
    </message>
    <message>
        <source>As the server says ({0})</source>
        <translation>按服务器所说（{0}）</translation>
    </message>
    <message>
        <source>To be safe ({0})</source>
        <translation>为安全起见（{0}）</translation>
    </message>
    <message>
        <source>This is not trusted.</source>
        <translation>此说明不受信任。</translation>
    </message>
    <message>
        <source>Tools of {0}</source>
        <translation>{0} 的工具</translation>
    </message>
    <message>
        <source>You said that this tool only reads, but it has changed since. Check it, and choose again.</source>
        <translation>您曾说明此工具只读取，但它此后已更改。请检查后重新选择。</translation>
    </message>
</context>
<context>
    <name>Transcript</name>
    <message>
        <source>Table</source>
        <translation>表格</translation>
    </message>
    <message>
        <source>Tool call: {0}</source>
        <translation>工具调用：{0}</translation>
    </message>
    <message>
        <source>Code</source>
        <translation>代码</translation>
    </message>
    <message>
        <source>Code: {0}</source>
        <translation>代码：{0}</translation>
    </message>
    <message>
        <source>Copied</source>
        <translation>已复制</translation>
    </message>
    <message>
        <source>Copy</source>
        <translation>复制</translation>
    </message>
    <message>
        <source>No wrap</source>
        <translation>不换行</translation>
    </message>
    <message>
        <source>Wrap</source>
        <translation>自动换行</translation>
    </message>
    <message>
        <source>Copy code</source>
        <translation>复制代码</translation>
    </message>
    <message>
        <source>Wrap lines</source>
        <translation>自动换行</translation>
    </message>
    <message>
        <source>Save code as…</source>
        <translation>代码另存为…</translation>
    </message>
    <message>
        <source>Save as…</source>
        <translation>另存为…</translation>
    </message>
    <message>
        <source>text</source>
        <translation>文本</translation>
    </message>
    <message>
        <source>⟨{0} × {1}⟩</source>
        <translation>⟨{0} × {1}⟩</translation>
    </message>
    <message>
        <source>… (this line is too long and was cut)</source>
        <translation>…（此行过长，已被截断）</translation>
    </message>
    <message>
        <source>Diagrams are drawn by an optional part that is not installed here. Install the program with it: {0}. Until then the source is shown.</source>
        <translation>图表由一个可选部分绘制，此处未安装。请连同它一起安装程序：{0}。在此之前显示源代码。</translation>
    </message>
    <message>
        <source>This diagram is too long to be drawn: more than {0} characters.</source>
        <translation>此图表过长，无法绘制：超过 {0} 个字符。</translation>
    </message>
    <message>
        <source>Drawing took too long and was stopped. A smaller diagram may work.</source>
        <translation>绘制耗时过长，已结束。较小的图表也许可以。</translation>
    </message>
    <message>
        <source>This diagram cannot be drawn: {0}. Ask the model to correct it, or correct the source yourself.</source>
        <translation>无法绘制此图表：{0}。请让模型更正，或自行修正源代码。</translation>
    </message>
    <message>
        <source>Drawing stopped early, perhaps because memory ran out. A smaller diagram may work.</source>
        <translation>绘制中断，可能是内存不足。较小的图表也许可以。</translation>
    </message>
    <message>
        <source>no reason was given</source>
        <translation>未说明原因</translation>
    </message>
    <message>
        <source>Drawing…</source>
        <translation>正在绘制…</translation>
    </message>
    <message>
        <source>Stop drawing</source>
        <translation>停止绘制</translation>
    </message>
    <message>
        <source>Show source</source>
        <translation>显示源代码</translation>
    </message>
    <message>
        <source>Show diagram</source>
        <translation>显示图表</translation>
    </message>
    <message>
        <source>Open diagram</source>
        <translation>打开图表</translation>
    </message>
    <message>
        <source>Open picture: {0}</source>
        <translation>打开图片：{0}</translation>
    </message>
    <message>
        <source>Picture</source>
        <translation>图片</translation>
    </message>
    <message>
        <source>{0} cannot be shown</source>
        <translation>无法显示 {0}</translation>
    </message>
    <message>
        <source>Picture: {0}</source>
        <translation>图片：{0}</translation>
    </message>
    <message>
        <source>Open picture</source>
        <translation>打开图片</translation>
    </message>
    <message>
        <source>Stop loading</source>
        <translation>停止加载</translation>
    </message>
    <message>
        <source>Load anyway</source>
        <translation>仍然加载</translation>
    </message>
    <message>
        <source>Try again</source>
        <translation>重试</translation>
    </message>
    <message>
        <source>Load picture</source>
        <translation>加载图片</translation>
    </message>
    <message>
        <source>Loading from {0}…</source>
        <translation>正在从 {0} 加载…</translation>
    </message>
    <message>
        <source>This picture is damaged: its size cannot be read.</source>
        <translation>此图片已损坏：无法读取其尺寸。</translation>
    </message>
    <message>
        <source>Try again, or open its address in a browser.</source>
        <translation>请重试，或在浏览器中打开其地址。</translation>
    </message>
    <message>
        <source>This formula is too long to be drawn.</source>
        <translation>此公式过长，无法绘制。</translation>
    </message>
    <message>
        <source>This formula is nested too deeply to be drawn.</source>
        <translation>此公式嵌套过深，无法绘制。</translation>
    </message>
    <message>
        <source>This formula takes too long to be drawn.</source>
        <translation>绘制此公式耗时过长。</translation>
    </message>
    <message>
        <source>This formula is too large to be drawn.</source>
        <translation>此公式过大，无法绘制。</translation>
    </message>
    <message>
        <source>This formula is too wide for its line.</source>
        <translation>此公式超出了行宽。</translation>
    </message>
    <message>
        <source>This formula is empty.</source>
        <translation>此公式为空。</translation>
    </message>
    <message>
        <source>This formula cannot be drawn: {0} is not known.</source>
        <translation>无法绘制此公式：未知的 {0}。</translation>
    </message>
    <message>
        <source>This formula cannot be drawn: it contains the character {0}.</source>
        <translation>无法绘制此公式：其中有字符 {0}。</translation>
    </message>
    <message>
        <source>This formula cannot be drawn: two superscripts or two subscripts follow each other.</source>
        <translation>无法绘制此公式：两个上标或两个下标相连。</translation>
    </message>
    <message>
        <source>This formula cannot be drawn: a bracket or a block is opened but not closed, or the reverse.</source>
        <translation>无法绘制此公式：其中有未闭合或多余的括号。</translation>
    </message>
    <message>
        <source>This formula cannot be drawn: something in it is missing.</source>
        <translation>无法绘制此公式：其中缺少内容。</translation>
    </message>
    <message>
        <source>This formula cannot be drawn.</source>
        <translation>无法绘制此公式。</translation>
    </message>
    <message>
        <source>Formula: {0}</source>
        <translation>公式：{0}</translation>
    </message>
    <message>
        <source>Source {0}: {1}</source>
        <translation>来源 {0}：{1}</translation>
    </message>
    <message>
        <source>Show all {0} sources</source>
        <translation>显示全部 {0} 个来源</translation>
    </message>
    <message>
        <source>Sources</source>
        <translation>来源</translation>
    </message>
    <message>
        <source>Copying… {0} messages so far.</source>
        <translation>正在复制… 目前 {0} 条消息。</translation>
    </message>
    <message>
        <source>Menu: {0}</source>
        <translation>菜单：{0}</translation>
    </message>
    <message>
        <source>Selection</source>
        <translation>选定内容</translation>
    </message>
    <message>
        <source>&amp;Copy</source>
        <translation>复制(&amp;C)</translation>
    </message>
    <message>
        <source>Copy as &amp;Markdown</source>
        <translation>复制为 Markdown(&amp;M)</translation>
    </message>
    <message>
        <source>Select &amp;all</source>
        <translation>全选(&amp;A)</translation>
    </message>
    <message>
        <source>Fi&amp;nd in conversation</source>
        <translation>在对话中查找(&amp;N)</translation>
    </message>
    <message>
        <source>Copied.</source>
        <translation>已复制。</translation>
    </message>
    <message>
        <source>Copy m&amp;essage</source>
        <translation>复制消息(&amp;E)</translation>
    </message>
    <message>
        <source>Copy message as Mar&amp;kdown</source>
        <translation>将消息复制为 Markdown(&amp;K)</translation>
    </message>
    <message>
        <source>Copy con&amp;versation as Markdown</source>
        <translation>将对话复制为 Markdown(&amp;V)</translation>
    </message>
    <message>
        <source>Copy link to t&amp;his message</source>
        <translation>复制此消息的链接(&amp;H)</translation>
    </message>
    <message>
        <source>Link to {0}</source>
        <translation>指向 {0} 的链接</translation>
    </message>
    <message>
        <source>Copy &amp;link</source>
        <translation>复制链接(&amp;L)</translation>
    </message>
    <message>
        <source>&amp;Open link</source>
        <translation>打开链接(&amp;O)</translation>
    </message>
    <message>
        <source>&amp;Back to the text</source>
        <translation>返回正文(&amp;B)</translation>
    </message>
    <message>
        <source>&amp;Go to footnote</source>
        <translation>转到脚注(&amp;G)</translation>
    </message>
    <message>
        <source>Footnote</source>
        <translation>脚注</translation>
    </message>
    <message>
        <source>Copy &amp;formula as LaTeX</source>
        <translation>将公式复制为 LaTeX(&amp;F)</translation>
    </message>
    <message>
        <source>Copy p&amp;icture</source>
        <translation>复制图片(&amp;I)</translation>
    </message>
    <message>
        <source>Copy &amp;table as Markdown</source>
        <translation>将表格复制为 Markdown(&amp;T)</translation>
    </message>
    <message>
        <source>Copy table as C&amp;SV</source>
        <translation>将表格复制为 CSV(&amp;S)</translation>
    </message>
    <message>
        <source>This picture was not copied: it is damaged or too large. Open it to see the reason.</source>
        <translation>未复制此图片：图片已损坏或过大。打开它即可查看原因。</translation>
    </message>
    <message>
        <source>Formula</source>
        <translation>公式</translation>
    </message>
    <message>
        <source>There is no answer yet.</source>
        <translation>还没有回答。</translation>
    </message>
    <message>
        <source>There is no code block yet.</source>
        <translation>还没有代码块。</translation>
    </message>
    <message>
        <source>Back to the text</source>
        <translation>返回正文</translation>
    </message>
    <message>
        <source>What can I do for you?</source>
        <translation>有什么可以帮您？</translation>
    </message>
    <message>
        <source>Write a message below. You can paste or drop pictures and files.</source>
        <translation>请在下方写消息。也可以粘贴或拖入图片和文件。</translation>
    </message>
    <message>
        <source>nothing changed</source>
        <translation>没有更改</translation>
    </message>
    <message>
        <source>{0} of {1} done</source>
        <translation>已完成 {0}/{1}</translation>
    </message>
    <message>
        <source>Regenerate with…</source>
        <translation>使用其他设置重新生成…</translation>
    </message>
    <message>
        <source>{0} of {1}</source>
        <translation>{0}/{1}</translation>
    </message>
    <message>
        <source>Copy your message</source>
        <translation>复制您的消息</translation>
    </message>
    <message>
        <source>Copy this answer</source>
        <translation>复制此回答</translation>
    </message>
    <message>
        <source>Branch from your message</source>
        <translation>从您的消息处分支</translation>
    </message>
    <message>
        <source>Branch from this answer</source>
        <translation>从此回答处分支</translation>
    </message>
    <message>
        <source>Delete your message…</source>
        <translation>删除您的消息…</translation>
    </message>
    <message>
        <source>Delete this answer…</source>
        <translation>删除此回答…</translation>
    </message>
    <message>
        <source>Branch from here</source>
        <translation>从这里分支</translation>
    </message>
    <message>
        <source>Delete…</source>
        <translation>删除…</translation>
    </message>
    <message>
        <source>Edit</source>
        <translation>编辑</translation>
    </message>
    <message>
        <source>Edit your message</source>
        <translation>编辑您的消息</translation>
    </message>
    <message>
        <source>Regenerate</source>
        <translation>重新生成</translation>
    </message>
    <message>
        <source>Regenerate this answer</source>
        <translation>重新生成此回答</translation>
    </message>
    <message>
        <source>Regenerate this answer with…</source>
        <translation>使用其他设置重新生成此回答…</translation>
    </message>
    <message>
        <source>Continue after your message</source>
        <translation>在您的消息之后继续</translation>
    </message>
    <message>
        <source>Continue this answer</source>
        <translation>继续此回答</translation>
    </message>
    <message>
        <source>This is the first version.</source>
        <translation>这是第一个版本。</translation>
    </message>
    <message>
        <source>This is the newest version.</source>
        <translation>这是最新版本。</translation>
    </message>
    <message>
        <source>Previous version</source>
        <translation>上一个版本</translation>
    </message>
    <message>
        <source>Next version</source>
        <translation>下一个版本</translation>
    </message>
    <message>
        <source>Previous version of your message</source>
        <translation>您的消息的上一个版本</translation>
    </message>
    <message>
        <source>Previous version of this answer</source>
        <translation>此回答的上一个版本</translation>
    </message>
    <message>
        <source>Next version of your message</source>
        <translation>您的消息的下一个版本</translation>
    </message>
    <message>
        <source>Next version of this answer</source>
        <translation>此回答的下一个版本</translation>
    </message>
    <message>
        <source>Show what followed</source>
        <translation>显示其后的内容</translation>
    </message>
    <message>
        <source>The model is still working. Wait, or press Stop first.</source>
        <translation>模型仍在工作。请等待，或先按“停止”。</translation>
    </message>
    <message>
        <source>Assistant said</source>
        <translation>助手说</translation>
    </message>
    <message>
        <source>Not finished</source>
        <translation>未完成</translation>
    </message>
    <message>
        <source>Thinking</source>
        <translation>思考</translation>
    </message>
    <message>
        <source>Thinking…</source>
        <translation>正在思考…</translation>
    </message>
    <message>
        <source>Thought</source>
        <translation>已思考</translation>
    </message>
    <message>
        <source>Thought for {0}</source>
        <translation>思考了 {0}</translation>
    </message>
    <message>
        <source>Show thinking</source>
        <translation>显示思考过程</translation>
    </message>
    <message>
        <source>{0} s</source>
        <translation>{0} 秒</translation>
    </message>
    <message>
        <source>{0} min {1} s</source>
        <translation>{0} 分 {1} 秒</translation>
    </message>
    <message>
        <source>You said</source>
        <translation>您说</translation>
    </message>
    <message>
        <source>Show “{0}”</source>
        <translation>显示“{0}”</translation>
    </message>
    <message>
        <source>Undo all changes since this message…</source>
        <translation>撤销自此消息以来的所有更改…</translation>
    </message>
    <message>
        <source>Error</source>
        <translation>错误</translation>
    </message>
    <message>
        <source>Notice</source>
        <translation>提示</translation>
    </message>
    <message>
        <source>Failed {0} times.</source>
        <translation>已失败 {0} 次。</translation>
    </message>
    <message>
        <source>Redo</source>
        <translation>恢复</translation>
    </message>
    <message>
        <source>Copy details</source>
        <translation>复制详细信息</translation>
    </message>
    <message>
        <source>Details</source>
        <translation>详细信息</translation>
    </message>
    <message>
        <source>Show details</source>
        <translation>显示详细信息</translation>
    </message>
    <message>
        <source>Retry</source>
        <translation>重试</translation>
    </message>
    <message>
        <source>Open settings</source>
        <translation>打开设置</translation>
    </message>
    <message>
        <source>Continue</source>
        <translation>继续</translation>
    </message>
    <message>
        <source>Ask anyway</source>
        <translation>仍然询问</translation>
    </message>
    <message>
        <source>Choose model</source>
        <translation>选择模型</translation>
    </message>
    <message>
        <source>Unknown content</source>
        <translation>未知内容</translation>
    </message>
    <message>
        <source>This version cannot show this content. It is saved unchanged.</source>
        <translation>此版本无法显示此内容。内容已原样保存。</translation>
    </message>
    <message>
        <source>Server step: {0}</source>
        <translation>服务器步骤：{0}</translation>
    </message>
    <message>
        <source>Server step</source>
        <translation>服务器步骤</translation>
    </message>
    <message>
        <source>{0} · {1} s</source>
        <translation>{0} · {1} 秒</translation>
    </message>
    <message>
        <source>Undone</source>
        <translation>已撤销</translation>
    </message>
    <message>
        <source>tool</source>
        <translation>工具</translation>
    </message>
    <message>
        <source>Undo</source>
        <translation>撤销</translation>
    </message>
    <message>
        <source>Writing</source>
        <translation>正在编写</translation>
    </message>
    <message>
        <source>Pending</source>
        <translation>待处理</translation>
    </message>
    <message>
        <source>Waiting for you</source>
        <translation>等待您处理</translation>
    </message>
    <message>
        <source>Running</source>
        <translation>运行中</translation>
    </message>
    <message>
        <source>Done</source>
        <translation>完成</translation>
    </message>
    <message>
        <source>Failed</source>
        <translation>失败</translation>
    </message>
    <message>
        <source>Denied</source>
        <translation>已拒绝</translation>
    </message>
    <message>
        <source>Cancelled</source>
        <translation>已取消</translation>
    </message>
    <message>
        <source>Timed out</source>
        <translation>已超时</translation>
    </message>
    <message>
        <source>Limit reached</source>
        <translation>已达限制</translation>
    </message>
    <message>
        <source>Unknown</source>
        <translation>未知</translation>
    </message>
    <message>
        <source>Review</source>
        <translation>查看</translation>
    </message>
    <message>
        <source>Undo this call</source>
        <translation>撤销此调用</translation>
    </message>
    <message>
        <source>Redo this call</source>
        <translation>恢复此调用</translation>
    </message>
    <message>
        <source>edited</source>
        <translation>已编辑</translation>
    </message>
    <message>
        <source>Preparing the arguments…</source>
        <translation>正在准备参数…</translation>
    </message>
    <message>
        <source>command</source>
        <translation>命令</translation>
    </message>
    <message>
        <source>arguments</source>
        <translation>参数</translation>
    </message>
    <message>
        <source>arguments, edited</source>
        <translation>参数，已编辑</translation>
    </message>
    <message>
        <source>steps</source>
        <translation>步骤</translation>
    </message>
    <message>
        <source>output</source>
        <translation>输出</translation>
    </message>
    <message>
        <source>result</source>
        <translation>结果</translation>
    </message>
    <message>
        <source>Preparing the result…</source>
        <translation>正在准备结果…</translation>
    </message>
    <message>
        <source>You denied this call.</source>
        <translation>您拒绝了此调用。</translation>
    </message>
    <message>
        <source>You denied this call and said: {0}</source>
        <translation>您拒绝了此调用，并说明：{0}</translation>
    </message>
    <message>
        <source>You changed the arguments of this call before it ran.</source>
        <translation>您在此调用运行前修改了它的参数。</translation>
    </message>
</context>
<context>
    <name>TranscriptNavigation</name>
    <message>
        <source>Caret browsing is on. F7 or Esc turns it off.</source>
        <translation>光标浏览已开启。按 F7 或 Esc 关闭。</translation>
    </message>
    <message>
        <source>Caret browsing is off.</source>
        <translation>光标浏览已关闭。</translation>
    </message>
</context>
<context>
    <name>TranscriptView</name>
    <message>
        <source>Transcript</source>
        <translation>对话记录</translation>
    </message>
</context>
<context>
    <name>TrashDialog</name>
    <message>
        <source>Deleted conversations</source>
        <translation>已删除的对话</translation>
    </message>
    <message>
        <source>Conversations stay in the trash for {0} days. Then they are deleted for good.</source>
        <translation>对话在回收站中保留 {0} 天，之后永久删除。</translation>
    </message>
    <message>
        <source>The trash is empty.</source>
        <translation>回收站为空。</translation>
    </message>
    <message>
        <source>Restore</source>
        <translation>还原</translation>
    </message>
    <message>
        <source>Delete for good…</source>
        <translation>永久删除…</translation>
    </message>
    <message>
        <source>Empty trash…</source>
        <translation>清空回收站…</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>关闭</translation>
    </message>
    <message>
        <source>Keep</source>
        <translation>保留</translation>
    </message>
    <message>
        <source>Delete for good</source>
        <translation>永久删除</translation>
    </message>
    <message>
        <source>Really delete for good</source>
        <translation>确认永久删除</translation>
    </message>
    <message>
        <source>Deleted for good in {0} days</source>
        <translation>{0} 天后永久删除</translation>
    </message>
    <message>
        <source>Deleted for good soon</source>
        <translation>即将永久删除</translation>
    </message>
    <message>
        <source>{0}, deleted {1}. {2}</source>
        <translation>{0}，删除于 {1}。{2}</translation>
    </message>
    <message>
        <source>Delete “{0}” for good? This cannot be undone.</source>
        <translation>永久删除“{0}”？删除后无法恢复。</translation>
    </message>
    <message>
        <source>Delete this conversation for good? This cannot be undone.</source>
        <translation>永久删除此对话？删除后无法恢复。</translation>
    </message>
    <message>
        <source>Delete everything in the trash for good? This cannot be undone.</source>
        <translation>永久删除回收站中的所有内容？删除后无法恢复。</translation>
    </message>
    <message>
        <source>Delete all {0} conversations for good? This cannot be undone.</source>
        <translation>永久删除全部 {0} 个对话？删除后无法恢复。</translation>
    </message>
    <message>
        <source>Trash</source>
        <translation>回收站</translation>
    </message>
</context>
<context>
    <name>TrashPresenter</name>
    <message>
        <source>“{0}” was put into the trash.</source>
        <translation>“{0}”已移到回收站。</translation>
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
        <translation>显示</translation>
    </message>
    <message>
        <source>New conversation</source>
        <translation>新对话</translation>
    </message>
    <message>
        <source>Quick question</source>
        <translation>快速提问</translation>
    </message>
    <message>
        <source>Waiting approvals</source>
        <translation>待批准</translation>
    </message>
    <message>
        <source>Quit</source>
        <translation>退出</translation>
    </message>
    <message>
        <source>The window is closed, and Desktop Agent goes on. Its icon in the tray brings the window back.</source>
        <translation>窗口已关闭，Desktop Agent 仍在运行。托盘中的图标可以重新打开窗口。</translation>
    </message>
    <message>
        <source>The model is working.</source>
        <translation>模型正在工作。</translation>
    </message>
    <message>
        <source>Calls that wait for you: {0}</source>
        <translation>等待您处理的调用：{0}</translation>
    </message>
    <message>
        <source>Questions of MCP servers that wait for you: {0}</source>
        <translation>等待您处理的 MCP 服务器问题：{0}</translation>
    </message>
</context>
<context>
    <name>UndoDialog</name>
    <message>
        <source>Undo</source>
        <translation>撤销</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>取消</translation>
    </message>
    <message>
        <source>Redo</source>
        <translation>恢复</translation>
    </message>
    <message>
        <source>If ticked: {0}</source>
        <translation>如果勾选：{0}</translation>
    </message>
    <message>
        <source>Redoing…</source>
        <translation>正在恢复…</translation>
    </message>
    <message>
        <source>Undoing…</source>
        <translation>正在撤销…</translation>
    </message>
    <message>
        <source>The file was changed after the undo. Tick it to redo the change anyway.</source>
        <translation>撤销后该文件又被更改过。勾选即可仍恢复该更改。</translation>
    </message>
    <message>
        <source>The file was changed after the call. Tick it to put it back anyway; Redo then restores the later change.</source>
        <translation>调用后该文件又被更改过。勾选即可仍将其还原；之后“恢复”可找回后来的更改。</translation>
    </message>
    <message>
        <source>Later changes are saved first: Undo restores them.</source>
        <translation>此后的更改会先保存：“撤销”可将其找回。</translation>
    </message>
    <message>
        <source>Later changes are saved first: Redo restores them.</source>
        <translation>此后的更改会先保存：“恢复”可将其找回。</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>关闭</translation>
    </message>
    <message>
        <source>There is nothing that could be redone.</source>
        <translation>没有可恢复的内容。</translation>
    </message>
    <message>
        <source>There is nothing left to undo: the files are already as they were before.</source>
        <translation>没有可撤销的内容：文件已经是之前的样子。</translation>
    </message>
    <message>
        <source>There is nothing that could be undone.</source>
        <translation>没有可撤销的内容。</translation>
    </message>
    <message>
        <source>Files that were changed since stay as they are, unless you tick them.</source>
        <translation>此后更改过的文件保持原样，除非您勾选它们。</translation>
    </message>
    <message>
        <source>These files return to their state before the undo. Messages stay.</source>
        <translation>这些文件将恢复到撤销之前的状态。消息保持不变。</translation>
    </message>
    <message>
        <source>These files return to their earlier state. Messages stay.</source>
        <translation>这些文件将恢复到之前的状态。消息保持不变。</translation>
    </message>
    <message>
        <source>“{0}” also undoes its other effects.</source>
        <translation>“{0}”还会撤销它的其他操作。</translation>
    </message>
    <message>
        <source>These calls cannot be undone:</source>
        <translation>这些调用无法撤销：</translation>
    </message>
    <message>
        <source>{0} times</source>
        <translation>{0} 次</translation>
    </message>
    <message>
        <source>once</source>
        <translation>一次</translation>
    </message>
    <message>
        <source>It changed {0}</source>
        <translation>更改了{0}</translation>
    </message>
    <message>
        <source>The agent is still working. Stop it first; then this list is updated.</source>
        <translation>智能体仍在工作。请先停止它；之后会更新此列表。</translation>
    </message>
    <message>
        <source>Stop</source>
        <translation>停止</translation>
    </message>
    <message>
        <source>Undo changes</source>
        <translation>撤销更改</translation>
    </message>
    <message>
        <source>Progress of the undoing</source>
        <translation>撤销进度</translation>
    </message>
</context>
<context>
    <name>UndoFileList</name>
    <message>
        <source>Files that would be changed</source>
        <translation>将被更改的文件</translation>
    </message>
    <message>
        <source>File</source>
        <translation>文件</translation>
    </message>
    <message>
        <source>Result</source>
        <translation>结果</translation>
    </message>
    <message>
        <source>Even if changed</source>
        <translation>即使已更改</translation>
    </message>
    <message>
        <source>{0}, in part</source>
        <translation>{0}，部分</translation>
    </message>
    <message>
        <source>Put back</source>
        <translation>还原</translation>
    </message>
    <message>
        <source>Brought back</source>
        <translation>取回</translation>
    </message>
    <message>
        <source>Removed again</source>
        <translation>重新移除</translation>
    </message>
    <message>
        <source>Stays as it is</source>
        <translation>保持原样</translation>
    </message>
</context>
<context>
    <name>UndoPresenter</name>
    <message>
        <source>Redo what “{0}” changed</source>
        <translation>恢复“{0}”所做的更改</translation>
    </message>
    <message>
        <source>Redo what was undone</source>
        <translation>恢复已撤销的更改</translation>
    </message>
    <message>
        <source>Undo what “{0}” changed</source>
        <translation>撤销“{0}”所做的更改</translation>
    </message>
    <message>
        <source>Undo all changes since “{0}”</source>
        <translation>撤销自“{0}”以来的所有更改</translation>
    </message>
    <message>
        <source>Undo all changes</source>
        <translation>撤销所有更改</translation>
    </message>
    <message>
        <source>Undo</source>
        <translation>撤销</translation>
    </message>
    <message>
        <source>Redo</source>
        <translation>恢复</translation>
    </message>
    <message>
        <source>Review…</source>
        <translation>查看…</translation>
    </message>
</context>
<context>
    <name>UnstoredBar</name>
    <message>
        <source>Not stored</source>
        <translation>不保存</translation>
    </message>
    <message>
        <source>This conversation is lost when it is closed, and when the program ends or crashes. Changes that tools make to files stay, and cannot be undone from here. Rules that you make are stored.</source>
        <translation>关闭此对话、程序结束或崩溃后，它就会丢失。工具对文件的更改会保留，且无法从这里撤销。您创建的规则会被保存。</translation>
    </message>
    <message>
        <source>Keep it</source>
        <translation>保留</translation>
    </message>
    <message>
        <source>Keep this conversation: store it</source>
        <translation>保留此对话：将其保存</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>关闭</translation>
    </message>
    <message>
        <source>Close this conversation</source>
        <translation>关闭此对话</translation>
    </message>
</context>
<context>
    <name>UnstoredList</name>
    <message>
        <source>Conversations that are not stored</source>
        <translation>不保存的对话</translation>
    </message>
    <message>
        <source>Not stored</source>
        <translation>不保存</translation>
    </message>
    <message>
        <source>{0}, not stored</source>
        <translation>{0}，不保存</translation>
    </message>
    <message>
        <source>Close “{0}”</source>
        <translation>关闭“{0}”</translation>
    </message>
</context>
<context>
    <name>UnstoredPresenter</name>
    <message>
        <source>Close the conversation?</source>
        <translation>关闭对话？</translation>
    </message>
    <message>
        <source>Close Desktop Agent?</source>
        <translation>关闭 Desktop Agent？</translation>
    </message>
    <message>
        <source>This conversation is not stored. Close it?</source>
        <translation>此对话未保存。要关闭吗？</translation>
    </message>
    <message>
        <source>Closing it loses what is in it. “Keep it” stores it as an ordinary conversation.</source>
        <translation>关闭后其内容会丢失。“保留”会将其保存为普通对话。</translation>
    </message>
    <message>
        <source>Keep it</source>
        <translation>保留</translation>
    </message>
    <message>
        <source>A conversation is not stored. Close it?</source>
        <translation>有一个对话未保存。要关闭吗？</translation>
    </message>
    <message>
        <source>Conversations that are not stored: {0}. Close them?</source>
        <translation>未保存的对话：{0}。要关闭吗？</translation>
    </message>
    <message>
        <source>Closing loses what is in them. “Keep them” stores them as ordinary conversations.</source>
        <translation>关闭后其内容会丢失。“全部保留”会将它们保存为普通对话。</translation>
    </message>
    <message>
        <source>Keep them</source>
        <translation>全部保留</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>取消</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>关闭</translation>
    </message>
</context>
<context>
    <name>UpdateNotice</name>
    <message>
        <source>Open its page</source>
        <translation>打开其页面</translation>
    </message>
</context>
<context>
    <name>UpdateSection</name>
    <message>
        <source>Check for a new version</source>
        <translation>检查新版本</translation>
    </message>
    <message>
        <source>Open its page</source>
        <translation>打开其页面</translation>
    </message>
    <message>
        <source>New versions</source>
        <translation>新版本</translation>
    </message>
    <message>
        <source>“{0}” is asked once a day: Settings → Network.</source>
        <translation>每天询问“{0}”一次：设置 → 网络。</translation>
    </message>
    <message>
        <source>The button asks “{0}”. To ask once a day, turn it on in Settings → Network.</source>
        <translation>按下按钮会询问“{0}”。也可在“设置 → 网络”中改为每天询问一次。</translation>
    </message>
    <message>
        <source>Nothing is downloaded or installed.</source>
        <translation>不会下载或安装任何内容。</translation>
    </message>
    <message>
        <source>Not checked for a newer version yet.</source>
        <translation>尚未检查是否有新版本。</translation>
    </message>
</context>
<context>
    <name>UrlElicitationView</name>
    <message>
        <source>Message from the server</source>
        <translation>来自服务器的消息</translation>
    </message>
    <message>
        <source>“{0}” says (not verified):</source>
        <translation>“{0}”的说明（未经核实）：</translation>
    </message>
    <message>
        <source>Address</source>
        <translation>地址</translation>
    </message>
    <message>
        <source>Open the page</source>
        <translation>打开页面</translation>
    </message>
    <message>
        <source>Open the page first.</source>
        <translation>请先打开页面。</translation>
    </message>
    <message>
        <source>Not clear where this leads</source>
        <translation>不清楚这会通向哪里</translation>
    </message>
    <message>
        <source>Leads to {0}</source>
        <translation>通向 {0}</translation>
    </message>
    <message>
        <source>Such letters can look like others. Compare the name with the one that you know, or type the name that you know into your browser.</source>
        <translation>这类字母可能看起来像其他字母。请与您所知的名称对照，或在浏览器中输入您所知的名称。</translation>
    </message>
    <message>
        <source>This name has unusual letters that cannot be shown.</source>
        <translation>此名称含有无法显示的特殊字母。</translation>
    </message>
    <message>
        <source>This name has unusual letters: it reads “{0}”, with {1}.</source>
        <translation>此名称含有特殊字母：读作“{0}”，含 {1}。</translation>
    </message>
    <message>
        <source>This address is not opened. Only https addresses are opened, and http on this computer, if nothing in them is ambiguous and they do not lead into a private network that the server is not in. Decline, and report the address to the maker of the server.</source>
        <translation>此地址不会打开。只打开 https 地址以及此计算机上的 http 地址，其中不得有歧义，也不得通向服务器不在其中的专用网络。请拒绝，并向服务器的开发者报告该地址。</translation>
    </message>
    <message>
        <source>The text “{0}@” before the host can look like another host.</source>
        <translation>主机前有“{0}@”，可能看起来像另一个主机。</translation>
    </message>
    <message>
        <source>It opens in your browser. What you enter there goes to that page, not to this program. Come back when you are done.</source>
        <translation>它会在您的浏览器中打开。您在那里输入的内容会传给该页面，而不是本程序。完成后请返回。</translation>
    </message>
    <message>
        <source>Opened in your browser.</source>
        <translation>已在浏览器中打开。</translation>
    </message>
</context>
<context>
    <name>UsageChart</name>
    <message>
        <source>Bars: {0}. The highest: {1}. Use the arrow keys to read each bar.</source>
        <translation>条形：{0}。最高：{1}。用方向键逐条朗读。</translation>
    </message>
</context>
<context>
    <name>UsageMeter</name>
    <message>
        <source>Tokens and cost</source>
        <translation>token 和费用</translation>
    </message>
    <message>
        <source>Usage of all conversations</source>
        <translation>所有对话的用量</translation>
    </message>
    <message>
        <source>{0} of {1} tokens</source>
        <translation>{0}/{1} 个 token</translation>
    </message>
    <message>
        <source>{0} tokens</source>
        <translation>{0} 个 token</translation>
    </message>
    <message>
        <source>{0} % from cache</source>
        <translation>{0}% 来自缓存</translation>
    </message>
    <message>
        <source>Context: {0} % of {1} tokens</source>
        <translation>上下文：{1} 个 token 的 {0}%</translation>
    </message>
    <message>
        <source>Input: {0} tokens</source>
        <translation>输入：{0} 个 token</translation>
    </message>
    <message>
        <source>Output: {0} tokens</source>
        <translation>输出：{0} 个 token</translation>
    </message>
    <message>
        <source>Reasoning, part of the output: {0} tokens</source>
        <translation>推理（输出的一部分）：{0} 个 token</translation>
    </message>
    <message>
        <source>Read from cache: {0} tokens</source>
        <translation>从缓存读取：{0} 个 token</translation>
    </message>
    <message>
        <source>Written to cache: {0} tokens</source>
        <translation>写入缓存：{0} 个 token</translation>
    </message>
    <message>
        <source>Cost: not known</source>
        <translation>费用：未知</translation>
    </message>
    <message>
        <source>Cost: {0}; that of some answers is not known</source>
        <translation>费用：{0}；部分回答的费用未知</translation>
    </message>
    <message>
        <source>Cost: {0}</source>
        <translation>费用：{0}</translation>
    </message>
</context>
<context>
    <name>UsageSettings</name>
    <message>
        <source>Time</source>
        <translation>时间范围</translation>
    </message>
    <message>
        <source>7 days</source>
        <translation>7 天</translation>
    </message>
    <message>
        <source>30 days</source>
        <translation>30 天</translation>
    </message>
    <message>
        <source>This year</source>
        <translation>今年</translation>
    </message>
    <message>
        <source>All time</source>
        <translation>全部时间</translation>
    </message>
    <message>
        <source>Grouped by</source>
        <translation>分组方式</translation>
    </message>
    <message>
        <source>By day</source>
        <translation>按日</translation>
    </message>
    <message>
        <source>By model</source>
        <translation>按模型</translation>
    </message>
    <message>
        <source>By workspace folder</source>
        <translation>按工作文件夹</translation>
    </message>
    <message>
        <source>In the chart</source>
        <translation>图表内容</translation>
    </message>
    <message>
        <source>Cost</source>
        <translation>费用</translation>
    </message>
    <message>
        <source>Tokens</source>
        <translation>Token</translation>
    </message>
    <message>
        <source>Export as CSV…</source>
        <translation>导出为 CSV…</translation>
    </message>
    <message>
        <source>No model was used in this period.</source>
        <translation>这段时间内没有使用过任何模型。</translation>
    </message>
    <message>
        <source>This includes answers of models without a price: a money budget does not count those. A token budget does.</source>
        <translation>其中包括没有价格的模型的回答：金额预算不计入这些回答，token 预算会计入。</translation>
    </message>
    <message>
        <source>Total</source>
        <translation>合计</translation>
    </message>
    <message>
        <source>{0} tokens</source>
        <translation>{0} 个 token</translation>
    </message>
    <message>
        <source>Cost not known</source>
        <translation>费用未知</translation>
    </message>
    <message>
        <source>Show all {0} rows</source>
        <translation>显示全部 {0} 行</translation>
    </message>
    <message>
        <source>{0} of what models read came from the cache.</source>
        <translation>模型读取的内容中有 {0} 来自缓存。</translation>
    </message>
    <message>
        <source>{0} That saved {1}.</source>
        <translation>{0}节省了 {1}。</translation>
    </message>
    <message>
        <source>Answers whose cost is not known: {0} of {1}. You can set prices on the page Models.</source>
        <translation>费用未知的回答：{0} / {1}。您可以在“模型”页面设置价格。</translation>
    </message>
    <message>
        <source>Cost by day</source>
        <translation>按日的费用</translation>
    </message>
    <message>
        <source>Tokens by day</source>
        <translation>按日的 token</translation>
    </message>
    <message>
        <source>Cost by model</source>
        <translation>按模型的费用</translation>
    </message>
    <message>
        <source>Tokens by model</source>
        <translation>按模型的 token</translation>
    </message>
    <message>
        <source>Cost by workspace folder</source>
        <translation>按工作文件夹的费用</translation>
    </message>
    <message>
        <source>Tokens by workspace folder</source>
        <translation>按工作文件夹的 token</translation>
    </message>
    <message>
        <source>{0}: nothing</source>
        <translation>{0}：无</translation>
    </message>
    <message>
        <source>{0}: {1}, {2} tokens</source>
        <translation>{0}：{1}，{2} 个 token</translation>
    </message>
    <message>
        <source>Every answer counts, also those of specialists, summaries, titles and MCP servers. Deleting a conversation does not change the counts. Days follow the clock of this computer.</source>
        <translation>每个回答都计入，包括专家、摘要、标题和 MCP 服务器的回答。删除对话不会改变统计。日期以此计算机的时钟为准。</translation>
    </message>
    <message>
        <source>For all conversations together, in every window on this data folder. At 80 % you are warned. At 100 % no model is asked any more, until you raise the budget or the day or month is over. “Ask anyway” makes one exception.</source>
        <translation>对使用此数据文件夹的所有窗口中的全部对话合计。达到 80% 时会提醒您。达到 100% 时不再询问任何模型，直到您提高预算，或当日、当月结束。“仍然询问”只破例一次。</translation>
    </message>
    <message>
        <source>Budgets</source>
        <translation>预算</translation>
    </message>
    <message>
        <source>not known</source>
        <translation>未知</translation>
    </message>
    <message>
        <source>{0} %</source>
        <translation>{0}%</translation>
    </message>
    <message>
        <source>No folder</source>
        <translation>无文件夹</translation>
    </message>
    <message>
        <source>Unknown model</source>
        <translation>未知模型</translation>
    </message>
    <message>
        <source>Money today</source>
        <translation>今日金额</translation>
    </message>
    <message>
        <source>Tokens today</source>
        <translation>今日 token</translation>
    </message>
    <message>
        <source>Money this month</source>
        <translation>本月金额</translation>
    </message>
    <message>
        <source>Tokens this month</source>
        <translation>本月 token</translation>
    </message>
    <message>
        <source>{0} of {1} ({2} %)</source>
        <translation>{0} / {1}（{2}%）</translation>
    </message>
</context>
<context>
    <name>UsageTable</name>
    <message>
        <source>Usage</source>
        <translation>用量</translation>
    </message>
</context>
<context>
    <name>UsageTableModel</name>
    <message>
        <source>Day</source>
        <translation>日期</translation>
    </message>
    <message>
        <source>Model</source>
        <translation>模型</translation>
    </message>
    <message>
        <source>Workspace folder</source>
        <translation>工作文件夹</translation>
    </message>
    <message>
        <source>Answers</source>
        <translation>回答</translation>
    </message>
    <message>
        <source>Input</source>
        <translation>输入</translation>
    </message>
    <message>
        <source>Output</source>
        <translation>输出</translation>
    </message>
    <message>
        <source>From cache</source>
        <translation>来自缓存</translation>
    </message>
    <message>
        <source>Tokens</source>
        <translation>Token</translation>
    </message>
    <message>
        <source>Cost</source>
        <translation>费用</translation>
    </message>
</context>
<context>
    <name>ValueRow</name>
    <message>
        <source>Name of the variable</source>
        <translation>变量名称</translation>
    </message>
    <message>
        <source>Value of the variable</source>
        <translation>变量值</translation>
    </message>
    <message>
        <source>Add variable</source>
        <translation>添加变量</translation>
    </message>
    <message>
        <source>Remove the variable {0}</source>
        <translation>移除变量 {0}</translation>
    </message>
    <message>
        <source>Secret values go to the keyring and are never shown again. Plain ones are kept in a file.</source>
        <translation>机密值存入密钥环，之后不再显示。普通值保存在文件中。</translation>
    </message>
    <message>
        <source>The name of a variable has only letters, digits and “_”, and does not begin with a digit. Change it.</source>
        <translation>变量名称由字母、数字和“_”组成，且不以数字开头。请修改。</translation>
    </message>
    <message>
        <source>The secret variable “{0}” has no value. Enter it, or remove the variable.</source>
        <translation>机密变量“{0}”没有值。请输入，或移除该变量。</translation>
    </message>
    <message>
        <source>There are two variables “{0}”. Remove one of them.</source>
        <translation>有两个变量“{0}”。请移除其中一个。</translation>
    </message>
    <message>
        <source>Name of the header</source>
        <translation>标头名称</translation>
    </message>
    <message>
        <source>Value of the header</source>
        <translation>标头值</translation>
    </message>
    <message>
        <source>Add header</source>
        <translation>添加标头</translation>
    </message>
    <message>
        <source>Remove the header {0}</source>
        <translation>移除标头 {0}</translation>
    </message>
    <message>
        <source>The values of headers go to the keyring and are never shown again.</source>
        <translation>标头的值存入密钥环，之后不再显示。</translation>
    </message>
    <message>
        <source>The name of a header has only letters, digits and “-”. Change it.</source>
        <translation>标头名称由字母、数字和“-”组成。请修改。</translation>
    </message>
    <message>
        <source>The header “{0}” has no value. Enter it, or remove the header.</source>
        <translation>标头“{0}”没有值。请输入，或移除该标头。</translation>
    </message>
    <message>
        <source>There are two headers “{0}”. Remove one of them.</source>
        <translation>有两个标头“{0}”。请移除其中一个。</translation>
    </message>
    <message>
        <source>Name</source>
        <translation>名称</translation>
    </message>
    <message>
        <source>Where the value is kept</source>
        <translation>值的存放位置</translation>
    </message>
    <message>
        <source>Secret</source>
        <translation>机密</translation>
    </message>
    <message>
        <source>Plain</source>
        <translation>普通</translation>
    </message>
    <message>
        <source>Kept in the keyring</source>
        <translation>保存在密钥环中</translation>
    </message>
    <message>
        <source>Value</source>
        <translation>值</translation>
    </message>
    <message>
        <source>Type here to replace it.</source>
        <translation>在此输入即可替换。</translation>
    </message>
</context>
<context>
    <name>WaitingButton</name>
    <message>
        <source>Waiting approvals</source>
        <translation>待批准</translation>
    </message>
</context>
<context>
    <name>WelcomePage</name>
    <message>
        <source>Looking for model servers on this computer…</source>
        <translation>正在此计算机上查找模型服务器…</translation>
    </message>
    <message>
        <source>Welcome to Desktop Agent</source>
        <translation>欢迎使用 Desktop Agent</translation>
    </message>
    <message>
        <source>Connect a model to begin. You can add others at any time.</source>
        <translation>连接一个模型即可开始。您可以随时添加其他模型。</translation>
    </message>
    <message>
        <source>Back</source>
        <translation>返回</translation>
    </message>
    <message>
        <source>Try the demo</source>
        <translation>试用演示</translation>
    </message>
    <message>
        <source>Connect a model</source>
        <translation>连接模型</translation>
    </message>
    <message>
        <source>Your conversations stay as they are.</source>
        <translation>您的对话保持不变。</translation>
    </message>
    <message>
        <source>Welcome</source>
        <translation>欢迎</translation>
    </message>
    <message>
        <source>On this computer</source>
        <translation>在此计算机上</translation>
    </message>
    <message>
        <source>With an API key</source>
        <translation>使用 API 密钥</translation>
    </message>
    <message>
        <source>Any other server</source>
        <translation>其他服务器</translation>
    </message>
    <message>
        <source>Run a model file…</source>
        <translation>运行模型文件…</translation>
    </message>
    <message>
        <source>Any other server…</source>
        <translation>其他服务器…</translation>
    </message>
    <message>
        <source>Look again</source>
        <translation>重新查找</translation>
    </message>
    <message>
        <source>Keys go into the keyring of your system, never into a file.</source>
        <translation>密钥存入系统的密钥环，绝不存入文件。</translation>
    </message>
    <message>
        <source>A server at any address, such as vLLM, LiteLLM or a gateway at work.</source>
        <translation>任意地址上的服务器，例如 vLLM、LiteLLM 或单位的网关。</translation>
    </message>
    <message>
        <source>Just looking? The offline demo shows what this program does. A script answers in it, no real model.</source>
        <translation>只想看看？离线演示展示本程序的功能。其中由脚本回答，不是真正的模型。</translation>
    </message>
</context>
<context>
    <name>WindowActions</name>
    <message>
        <source>Commands</source>
        <translation>命令</translation>
    </message>
    <message>
        <source>Waiting approvals</source>
        <translation>待批准</translation>
    </message>
    <message>
        <source>inbox pending permission allow deny decide calls</source>
        <translation>收件箱 待处理 权限 允许 拒绝 决定 调用</translation>
    </message>
    <message>
        <source>Scheduled prompts</source>
        <translation>定时提示词</translation>
    </message>
    <message>
        <source>cron automatic recurring repeat daily weekly timer run by itself</source>
        <translation>cron 自动 重复 每天 每周 定时 计划任务</translation>
    </message>
    <message>
        <source>chat start create</source>
        <translation>聊天 开始 新建 创建</translation>
    </message>
    <message>
        <source>New conversation</source>
        <translation>新对话</translation>
    </message>
    <message>
        <source>private temporary incognito secret never saved off the record</source>
        <translation>私密 临时 无痕 隐私 不保存</translation>
    </message>
    <message>
        <source>New conversation that is not stored</source>
        <translation>新建不保存的对话</translation>
    </message>
    <message>
        <source>Quick question</source>
        <translation>快速提问</translation>
    </message>
    <message>
        <source>ask small popup clipboard</source>
        <translation>提问 小窗口 弹出 剪贴板</translation>
    </message>
    <message>
        <source>create directory project</source>
        <translation>新建 目录 项目</translation>
    </message>
    <message>
        <source>New folder…</source>
        <translation>新建文件夹…</translation>
    </message>
    <message>
        <source>Export this conversation…</source>
        <translation>导出此对话…</translation>
    </message>
    <message>
        <source>save share markdown html json pdf print</source>
        <translation>保存 分享 文件 markdown html json zip pdf 打印</translation>
    </message>
    <message>
        <source>Export all conversations…</source>
        <translation>导出所有对话…</translation>
    </message>
    <message>
        <source>Import conversations…</source>
        <translation>导入对话…</translation>
    </message>
    <message>
        <source>chatgpt claude history archive load</source>
        <translation>chatgpt claude 历史 归档 加载</translation>
    </message>
    <message>
        <source>claude code codex opencode gemini goose jan lm studio history found</source>
        <translation>claude code codex opencode gemini goose jan lm studio 历史 找到</translation>
    </message>
    <message>
        <source>Import from other assistants…</source>
        <translation>从其他助手导入…</translation>
    </message>
    <message>
        <source>provider server key add login</source>
        <translation>提供商 服务器 密钥 添加 登录</translation>
    </message>
    <message>
        <source>Connect a model</source>
        <translation>连接模型</translation>
    </message>
    <message>
        <source>example offline scripted</source>
        <translation>示例 离线 演示</translation>
    </message>
    <message>
        <source>Try the demo</source>
        <translation>试用演示</translation>
    </message>
    <message>
        <source>repair damaged disk</source>
        <translation>修复 损坏 磁盘</translation>
    </message>
    <message>
        <source>Check saved conversations</source>
        <translation>检查已保存的对话</translation>
    </message>
    <message>
        <source>Quit</source>
        <translation>退出</translation>
    </message>
    <message>
        <source>exit close end</source>
        <translation>关闭 离开 结束</translation>
    </message>
    <message>
        <source>Undo the last change to conversations</source>
        <translation>撤销对对话的上次更改</translation>
    </message>
    <message>
        <source>restore</source>
        <translation>还原</translation>
    </message>
    <message>
        <source>Undo all changes since this message…</source>
        <translation>撤销自此消息以来的所有更改…</translation>
    </message>
    <message>
        <source>revert restore files rewind</source>
        <translation>还原 恢复 文件 回退</translation>
    </message>
    <message>
        <source>Find in conversation</source>
        <translation>在对话中查找</translation>
    </message>
    <message>
        <source>search words text</source>
        <translation>搜索 文字 文本</translation>
    </message>
    <message>
        <source>Find next</source>
        <translation>查找下一个</translation>
    </message>
    <message>
        <source>Find previous</source>
        <translation>查找上一个</translation>
    </message>
    <message>
        <source>Search conversations</source>
        <translation>搜索对话</translation>
    </message>
    <message>
        <source>find titles list filter chats</source>
        <translation>查找 标题 列表 筛选 聊天</translation>
    </message>
    <message>
        <source>Copy last answer</source>
        <translation>复制上一条回答</translation>
    </message>
    <message>
        <source>clipboard response reply message</source>
        <translation>剪贴板 回复 消息</translation>
    </message>
    <message>
        <source>Copy last code block</source>
        <translation>复制最后一个代码块</translation>
    </message>
    <message>
        <source>clipboard source snippet program</source>
        <translation>剪贴板 源码 代码片段 程序</translation>
    </message>
    <message>
        <source>Copy conversation as Markdown</source>
        <translation>将对话复制为 Markdown</translation>
    </message>
    <message>
        <source>export save</source>
        <translation>导出 保存</translation>
    </message>
    <message>
        <source>preferences options configuration</source>
        <translation>选项 偏好 首选项 配置</translation>
    </message>
    <message>
        <source>Settings</source>
        <translation>设置</translation>
    </message>
    <message>
        <source>Theme and appearance</source>
        <translation>主题和外观</translation>
    </message>
    <message>
        <source>dark light colours look font density zoom</source>
        <translation>深色 浅色 颜色 外观 字体 密度 缩放</translation>
    </message>
    <message>
        <source>Providers and keys</source>
        <translation>提供商和密钥</translation>
    </message>
    <message>
        <source>api key server account</source>
        <translation>api 密钥 服务器 账户</translation>
    </message>
    <message>
        <source>Rules</source>
        <translation>规则</translation>
    </message>
    <message>
        <source>permissions allowed tools always allow</source>
        <translation>权限 允许的工具 始终允许</translation>
    </message>
    <message>
        <source>MCP servers</source>
        <translation>MCP 服务器</translation>
    </message>
    <message>
        <source>tools plugins extensions</source>
        <translation>工具 插件 扩展</translation>
    </message>
    <message>
        <source>Storage</source>
        <translation>存储</translation>
    </message>
    <message>
        <source>data folder disk</source>
        <translation>数据文件夹 磁盘</translation>
    </message>
    <message>
        <source>Usage</source>
        <translation>用量</translation>
    </message>
    <message>
        <source>tokens cost money price spent budget limit statistics chart</source>
        <translation>token 费用 金额 价格 花费 预算 限额 统计 图表</translation>
    </message>
    <message>
        <source>Show or hide the conversations</source>
        <translation>显示或隐藏对话列表</translation>
    </message>
    <message>
        <source>sidebar list panel fold</source>
        <translation>侧边栏 列表 折叠</translation>
    </message>
    <message>
        <source>archived conversations</source>
        <translation>已归档的对话</translation>
    </message>
    <message>
        <source>Show the archive</source>
        <translation>显示归档</translation>
    </message>
    <message>
        <source>deleted removed bin restore bring back</source>
        <translation>已删除 已移除 回收站 还原 找回</translation>
    </message>
    <message>
        <source>Trash</source>
        <translation>回收站</translation>
    </message>
    <message>
        <source>Next conversation</source>
        <translation>下一个对话</translation>
    </message>
    <message>
        <source>Previous conversation</source>
        <translation>上一个对话</translation>
    </message>
    <message>
        <source>Conversation {0}</source>
        <translation>对话 {0}</translation>
    </message>
    <message>
        <source>zoom in text size bigger font</source>
        <translation>放大 文本大小 更大 字体</translation>
    </message>
    <message>
        <source>Larger text</source>
        <translation>放大文本</translation>
    </message>
    <message>
        <source>zoom out text size font</source>
        <translation>缩小 文本大小 字体</translation>
    </message>
    <message>
        <source>Smaller text</source>
        <translation>缩小文本</translation>
    </message>
    <message>
        <source>reset zoom</source>
        <translation>重置缩放</translation>
    </message>
    <message>
        <source>Normal text size</source>
        <translation>正常文本大小</translation>
    </message>
    <message>
        <source>Open the menu bar</source>
        <translation>打开菜单栏</translation>
    </message>
    <message>
        <source>menus alt</source>
        <translation>菜单 alt</translation>
    </message>
    <message>
        <source>Caret browsing</source>
        <translation>光标浏览</translation>
    </message>
    <message>
        <source>select cursor</source>
        <translation>选择 光标</translation>
    </message>
    <message>
        <source>Pin this conversation</source>
        <translation>置顶此对话</translation>
    </message>
    <message>
        <source>keep on top favourite star</source>
        <translation>置顶 收藏 星标</translation>
    </message>
    <message>
        <source>Unpin this conversation</source>
        <translation>取消置顶此对话</translation>
    </message>
    <message>
        <source>Archive this conversation</source>
        <translation>归档此对话</translation>
    </message>
    <message>
        <source>hide put away</source>
        <translation>隐藏 收起</translation>
    </message>
    <message>
        <source>Bring this conversation back from the archive</source>
        <translation>将此对话移出归档</translation>
    </message>
    <message>
        <source>unarchive restore</source>
        <translation>取消归档 还原</translation>
    </message>
    <message>
        <source>Move this conversation to a folder…</source>
        <translation>将此对话移到文件夹…</translation>
    </message>
    <message>
        <source>organise sort</source>
        <translation>整理 分类</translation>
    </message>
    <message>
        <source>Tags of this conversation…</source>
        <translation>此对话的标签…</translation>
    </message>
    <message>
        <source>label keyword</source>
        <translation>标记 关键词</translation>
    </message>
    <message>
        <source>Duplicate this conversation</source>
        <translation>将此对话复制为新对话</translation>
    </message>
    <message>
        <source>copy clone</source>
        <translation>复制 克隆</translation>
    </message>
    <message>
        <source>Open this conversation in a new window</source>
        <translation>在新窗口中打开此对话</translation>
    </message>
    <message>
        <source>detach</source>
        <translation>分离</translation>
    </message>
    <message>
        <source>Copy the link to this conversation</source>
        <translation>复制此对话的链接</translation>
    </message>
    <message>
        <source>url address share</source>
        <translation>网址 地址 分享</translation>
    </message>
    <message>
        <source>Merge the selected conversations</source>
        <translation>合并所选对话</translation>
    </message>
    <message>
        <source>join combine</source>
        <translation>合并 组合</translation>
    </message>
    <message>
        <source>title name chat</source>
        <translation>标题 名称 聊天</translation>
    </message>
    <message>
        <source>Rename this conversation</source>
        <translation>重命名此对话</translation>
    </message>
    <message>
        <source>tree versions history all</source>
        <translation>树 版本 历史 全部</translation>
    </message>
    <message>
        <source>Branches of this conversation</source>
        <translation>此对话的分支</translation>
    </message>
    <message>
        <source>compact shorten context</source>
        <translation>压缩 缩短 上下文</translation>
    </message>
    <message>
        <source>Summarise older messages</source>
        <translation>总结较早的消息</translation>
    </message>
    <message>
        <source>remove chat trash bin</source>
        <translation>移除 聊天 回收站</translation>
    </message>
    <message>
        <source>Delete this conversation</source>
        <translation>删除此对话</translation>
    </message>
    <message>
        <source>Choose model</source>
        <translation>选择模型</translation>
    </message>
    <message>
        <source>switch change another</source>
        <translation>切换 更改 其他</translation>
    </message>
    <message>
        <source>Choose reasoning</source>
        <translation>选择推理级别</translation>
    </message>
    <message>
        <source>thinking effort</source>
        <translation>思考 强度</translation>
    </message>
    <message>
        <source>Conversation settings</source>
        <translation>对话设置</translation>
    </message>
    <message>
        <source>temperature system prompt instructions parameters length of the answer</source>
        <translation>温度 系统提示词 指令 参数 回答长度</translation>
    </message>
    <message>
        <source>Choose mode</source>
        <translation>选择模式</translation>
    </message>
    <message>
        <source>permissions approval plan accept edits</source>
        <translation>权限 批准 计划 接受编辑</translation>
    </message>
    <message>
        <source>Write a message</source>
        <translation>写消息</translation>
    </message>
    <message>
        <source>type prompt</source>
        <translation>输入 提示词</translation>
    </message>
    <message>
        <source>Send the message</source>
        <translation>发送消息</translation>
    </message>
    <message>
        <source>New line in the message</source>
        <translation>在消息中换行</translation>
    </message>
    <message>
        <source>Stop the answer</source>
        <translation>停止回答</translation>
    </message>
    <message>
        <source>cancel interrupt abort break</source>
        <translation>取消 中断 终止</translation>
    </message>
    <message>
        <source>Attach files</source>
        <translation>附加文件</translation>
    </message>
    <message>
        <source>picture photo image text upload</source>
        <translation>图片 照片 文本 上传</translation>
    </message>
    <message>
        <source>Waiting messages</source>
        <translation>等待中的消息</translation>
    </message>
    <message>
        <source>queue</source>
        <translation>队列</translation>
    </message>
    <message>
        <source>Answer the question</source>
        <translation>回答问题</translation>
    </message>
    <message>
        <source>Edit last prompt</source>
        <translation>编辑上一条提示词</translation>
    </message>
    <message>
        <source>change message correct</source>
        <translation>更改 消息 更正</translation>
    </message>
    <message>
        <source>Regenerate answer</source>
        <translation>重新生成回答</translation>
    </message>
    <message>
        <source>retry again answer anew</source>
        <translation>重试 再次 重新回答</translation>
    </message>
    <message>
        <source>go on resume after stop limit</source>
        <translation>继续 恢复 停止 限制</translation>
    </message>
    <message>
        <source>Continue answer</source>
        <translation>继续回答</translation>
    </message>
    <message>
        <source>Previous version</source>
        <translation>上一个版本</translation>
    </message>
    <message>
        <source>branch before after</source>
        <translation>分支 之前 之后</translation>
    </message>
    <message>
        <source>Next version</source>
        <translation>下一个版本</translation>
    </message>
    <message>
        <source>Delete message…</source>
        <translation>删除消息…</translation>
    </message>
    <message>
        <source>remove message prompt answer for good</source>
        <translation>移除 消息 提示词 回答 永久</translation>
    </message>
    <message>
        <source>guide manual introduction how to</source>
        <translation>指南 手册 入门 使用方法</translation>
    </message>
    <message>
        <source>Help</source>
        <translation>帮助</translation>
    </message>
    <message>
        <source>keys hotkeys bindings</source>
        <translation>按键 热键 快捷键</translation>
    </message>
    <message>
        <source>Keyboard shortcuts</source>
        <translation>键盘快捷键</translation>
    </message>
    <message>
        <source>version licence program data folder</source>
        <translation>版本 许可证 程序 数据文件夹</translation>
    </message>
    <message>
        <source>About Desktop Agent</source>
        <translation>关于 Desktop Agent</translation>
    </message>
    <message>
        <source>license components libraries open source sbom</source>
        <translation>许可证 组件 库 开源 SBOM</translation>
    </message>
    <message>
        <source>Licences</source>
        <translation>许可证</translation>
    </message>
</context>
<context>
    <name>WindowLayout</name>
    <message>
        <source>Show or hide the conversations</source>
        <translation>显示或隐藏对话列表</translation>
    </message>
    <message>
        <source>Width of the sidebar</source>
        <translation>侧边栏宽度</translation>
    </message>
</context>
<context>
    <name>WorkspacePicker</name>
    <message>
        <source>Workspace folder</source>
        <translation>工作文件夹</translation>
    </message>
    <message>
        <source>Choose folder…</source>
        <translation>选择文件夹…</translation>
    </message>
    <message>
        <source>No folder</source>
        <translation>无文件夹</translation>
    </message>
    <message>
        <source>The agent works without files.</source>
        <translation>智能体工作时不使用文件。</translation>
    </message>
    <message>
        <source>Choose the workspace folder</source>
        <translation>选择工作文件夹</translation>
    </message>
</context>
<context>
    <name>_EmptyNote</name>
    <message>
        <source>No conversations in here yet</source>
        <translation>此处还没有对话</translation>
    </message>
    <message>
        <source>No conversations yet</source>
        <translation>还没有对话</translation>
    </message>
</context>
<context>
    <name>_HostList</name>
    <message>
        <source>The command can reach only these hosts:</source>
        <translation>命令只能访问这些主机：</translation>
    </message>
    <message>
        <source>This system cannot limit the command to certain hosts: it can use the whole network and the services of this computer. The command says that it needs:</source>
        <translation>此系统无法将命令限制于特定主机：它可以使用整个网络以及此计算机的服务。命令声明需要：</translation>
    </message>
    <message>
        <source>Hosts</source>
        <translation>主机</translation>
    </message>
</context>
<context>
    <name>_MessageField</name>
    <message>
        <source>Message to the model, sent with Deny</source>
        <translation>给模型的消息，随“拒绝”发送</translation>
    </message>
    <message>
        <source>Message, sent with Deny</source>
        <translation>消息，随“拒绝”发送</translation>
    </message>
    <message>
        <source>Message</source>
        <translation>消息</translation>
    </message>
</context>
<context>
    <name>_MigrationCopies</name>
    <message>
        <source>Before a new version changes how conversations are saved, it makes a copy. You can open the copy in a new folder, with your current pictures and settings.</source>
        <translation>新版本在更改对话的保存方式之前会创建副本。您可以在新文件夹中打开该副本，并使用您当前的图片和设置。</translation>
    </message>
    <message>
        <source>Copies made before an upgrade</source>
        <translation>升级前创建的副本</translation>
    </message>
    <message>
        <source>Written by version {0}</source>
        <translation>由版本 {0} 写入</translation>
    </message>
    <message>
        <source>Written by an earlier version, in its format {0}</source>
        <translation>由较早的版本以其格式 {0} 写入</translation>
    </message>
    <message>
        <source>Open in a new folder…</source>
        <translation>在新文件夹中打开…</translation>
    </message>
    <message>
        <source>Delete…</source>
        <translation>删除…</translation>
    </message>
    <message>
        <source>Delete this copy</source>
        <translation>删除此副本</translation>
    </message>
</context>
<context>
    <name>_ModelCard</name>
    <message>
        <source>runs</source>
        <translation>正在运行</translation>
    </message>
    <message>
        <source>is being loaded</source>
        <translation>正在加载</translation>
    </message>
    <message>
        <source>context {0}</source>
        <translation>上下文 {0}</translation>
    </message>
    <message>
        <source>Use</source>
        <translation>使用</translation>
    </message>
    <message>
        <source>Run</source>
        <translation>运行</translation>
    </message>
    <message>
        <source>Use {0} in this conversation</source>
        <translation>在此对话中使用 {0}</translation>
    </message>
    <message>
        <source>Run {0}</source>
        <translation>运行 {0}</translation>
    </message>
</context>
<context>
    <name>_PickDialog</name>
    <message>
        <source>Found</source>
        <translation>找到的项目</translation>
    </message>
</context>
<context>
    <name>_ReadOnlyBar</name>
    <message>
        <source>Continue here</source>
        <translation>在这里继续</translation>
    </message>
    <message>
        <source>Copies this conversation, which can then be continued with any model</source>
        <translation>复制此对话，之后可使用任意模型继续</translation>
    </message>
</context>
<context>
    <name>_ResultAnnouncer</name>
    <message>
        <source>Conversations found: {0}</source>
        <translation>找到的对话：{0}</translation>
    </message>
</context>
<context>
    <name>_SpellingMenu</name>
    <message>
        <source>No suggestions</source>
        <translation>没有建议</translation>
    </message>
    <message>
        <source>Add to dictionary</source>
        <translation>添加到词典</translation>
    </message>
    <message>
        <source>Ignore</source>
        <translation>忽略</translation>
    </message>
</context>
<context>
    <name>_TitleDelegate</name>
    <message>
        <source>Title</source>
        <translation>标题</translation>
    </message>
</context>
<context>
    <name>dates</name>
    <message>
        <source>MMM yyyy</source>
        <translation>yyyy年M月</translation>
    </message>
    <message>
        <source>Yesterday</source>
        <translation>昨天</translation>
    </message>
    <message>
        <source>{0} {1}</source>
        <comment>a date and a time of day</comment>
        <translation>{0} {1}</translation>
    </message>
    <message>
        <source>d MMM</source>
        <translation>M月d日</translation>
    </message>
    <message>
        <source>d MMM yyyy</source>
        <translation>yyyy年M月d日</translation>
    </message>
</context>
</TS>
