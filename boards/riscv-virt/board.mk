# SPDX-License-Identifier: Apache-2.0
# RISC-V with 32 bits, the simulator's "virt" machine: Ethernet by virtio, UART 16550. Variables of
# up to 512 bytes count as small, and are put near the global pointer.
TOOLS := riscv64-unknown-elf-
CPU := --specs=picolibc.specs -misa-spec=2.2 -march=rv32imac -mabi=ilp32 -msave-restore -msmall-data-limit=512
MEMORY := FLASH_ORIGIN=0x80000000 FLASH_SIZE=4M RAM_ORIGIN=0x80400000 RAM_SIZE=4M
DRIVERS := riscv clint uart_16550 virtio_net
DEFINES := CLOCK_HZ=10000000 CLINT_BASE=0x02000000 UART_BASE=0x10000000 VIRTIO_BASE=0x10001000
QEMU := qemu-system-riscv32 -M virt -bios none -global virtio-mmio.force-legacy=false
NIC := -netdev user,id=net0 -device virtio-net-device,netdev=net0,bus=virtio-mmio-bus.0
IMAGES := superloop superloop_shared contender station test_resp test_engine
