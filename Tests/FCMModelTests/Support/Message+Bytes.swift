import FCMModel

extension Message {
    /// The UTF-8 of every text, named; unlike `==`, which takes composed and decomposed letters for one another.
    var bytesOfTexts: [[UInt8]] {
        var texts: [String] = []
        for text in self.notification?.texts ?? [] { texts += [text.key.rawValue, text.value] }
        for arguments in [self.notification?.titleLocArgs, self.notification?.bodyLocArgs] {
            texts += ["arguments"] + (arguments ?? ["none"])
        }
        texts += ["collapse", self.collapseKey ?? "none", "package", self.restrictedPackageName ?? "none"]
        for entry in self.data { texts += [entry.key, entry.value] }
        return texts.map { Array($0.utf8) }
    }
}
