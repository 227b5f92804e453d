//! Remedies for this machine as a script. Printed, never run.

use crate::finding::HostFiles;

/// Returns a script with the commands, the GRUB line, and a systemd unit. Printing it changes nothing.
pub fn script(host: &HostFiles) -> String {
    let processors = host.processors().max(1);
    format!("{HEAD}{}{}{}", immediate_commands(), kernel_parameters(processors), systemd_unit(processors))
}

const HEAD: &str = "\
#!/bin/sh
# What tickpath doctor would change on this machine. Read it first; run it as root. It asks nothing, and stops at the
# first command that fails. Each step says how it is undone; all but the boot line are gone after a reboot.
set -eu
";

fn immediate_commands() -> String {
    let steps = [
        (
            "Full frequency on all cores. Undo: the governor that was there before (ondemand, powersave or schedutil).",
            "for governor in /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor; do\n    \
             if [ -w \"$governor\" ]; then echo performance > \"$governor\"; fi\ndone",
        ),
        (
            "Huge pages only where a program asks for them. Undo: echo always > the same file.",
            "if [ -w /sys/kernel/mm/transparent_hugepage/enabled ]; then\n    \
             echo madvise > /sys/kernel/mm/transparent_hugepage/enabled\nfi",
        ),
        (
            "A virtual machine's CPU spins for so many ns before it halts. Undo: the number that was there before.",
            "poll=/sys/module/haltpoll/parameters/guest_halt_poll_ns\n\
             if [ -w $poll ] && [ \"$(cat $poll)\" -lt 200000 ]; then echo 200000 > $poll; fi",
        ),
        ("No paging of what is idle. Undo: sysctl -w vm.swappiness=60.", "sysctl -w vm.swappiness=0"),
        (
            "Interrupts stay where they are. Undo: systemctl enable --now irqbalance.",
            "if systemctl is-active --quiet irqbalance 2>/dev/null; then systemctl disable --now irqbalance; fi",
        ),
        (
            "Room for topics in shared memory. Undo: mount -o remount,size=50% /dev/shm.",
            "if [ \"$(df -Pk /dev/shm | awk 'END {print $2}')\" -lt 2097152 ]; then\n    \
             mount -o remount,size=2g /dev/shm\nfi",
        ),
    ];
    steps.iter().map(|(why, what)| format!("\n# {why}\n{what}\n")).collect()
}

fn kernel_parameters(processors: usize) -> String {
    if processors < 3 {
        return format!(
            "\n# This machine has {processors} CPUs. One must stay for the system, so that there is at most one to isolate, and \
             a path\n# needs two: nothing is isolated here. Three or more are worth it.\n"
        );
    }
    let list = isolated(processors);
    format!(
        "\n# For the kernel's command line: the CPUs {list} belong to the path alone. Undo: take the words away again.\n\
         # In /etc/default/grub, then update-grub and a reboot:\n\
         #   GRUB_CMDLINE_LINUX=\"isolcpus={list} nohz_full={list} rcu_nocbs={list} irqaffinity=0 \
         intel_idle.max_cstate=1 processor.max_cstate=1 tsc=reliable\"\n"
    )
}

fn systemd_unit(processors: usize) -> String {
    let list = if processors < 3 { (processors - 1).to_string() } else { isolated(processors) };
    format!(
        "\n# For the process on the path, as /etc/systemd/system/tickpath.service:\n\
         cat <<'UNIT'\n\
         [Unit]\n\
         Description=Tickpath order system\n\
         \n\
         [Service]\n\
         ExecStart=/usr/local/bin/YOUR-PROGRAM\n\
         CPUAffinity={list}\n\
         CPUSchedulingPolicy=fifo\n\
         CPUSchedulingPriority=80\n\
         LimitRTPRIO=90\n\
         LimitMEMLOCK=infinity\n\
         LimitNOFILE=65536\n\
         Restart=on-failure\n\
         \n\
         [Install]\n\
         WantedBy=multi-user.target\n\
         UNIT\n"
    )
}

/// Returns all processors but the first, which stays for the system.
fn isolated(processors: usize) -> String {
    format!("1-{}", processors - 1)
}
